package serving_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/catalog"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestFutureRevisions: callers who ask for revisions that do not exist, by every way to
// name one, are refused at once, and keep no other caller from an answer.
func TestFutureRevisions(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/one", map[string]string{"a.go": "needle", "b.go": "needle"})
	c.eventually("it is found", func() bool { return len(c.find("needle", nil).Files) == 2 })
	page := c.find("needle", &searchv1.SearchOptions{MaxFiles: 1}).NextPageToken
	const before = 1 + 16 + 8 // version, mark and score
	_, n := binary.Uvarint(page[before:])
	forged := append(binary.AppendUvarint(append([]byte(nil), page[:before]...), math.MaxInt64), page[before+n:]...)
	future := &searchv1.Consistency{Level: &searchv1.Consistency_AtLeast{AtLeast: catalog.EncodeToken(1 << 60)}}
	ways := []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := c.search.Search(ctx, &searchv1.SearchRequest{Query: "needle", Options: &searchv1.SearchOptions{Consistency: future}})
			return err
		},
		func(ctx context.Context) error {
			_, err := c.search.Search(ctx, &searchv1.SearchRequest{Query: "needle", PageToken: forged})
			return err
		},
		func(ctx context.Context) error {
			_, err := c.search.List(ctx, &searchv1.ListRequest{Query: "needle", Consistency: future})
			return err
		},
		func(ctx context.Context) error {
			_, err := c.search.GetFile(ctx, &searchv1.GetFileRequest{Repo: "host/one", Path: []byte("a.go"), Consistency: future})
			return err
		},
		func(ctx context.Context) error {
			stream, err := c.search.StreamSearch(ctx, &searchv1.StreamSearchRequest{
				Search: &searchv1.SearchRequest{Query: "needle", Options: &searchv1.SearchOptions{Consistency: future}},
			})
			if err == nil {
				_, err = stream.Recv()
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		},
	}
	var greedy sync.WaitGroup
	refused := make(chan struct{})
	for i := range 400 {
		greedy.Go(func() {
			if err := ways[i%len(ways)](t.Context()); status.Code(err) != codes.FailedPrecondition {
				t.Errorf("way %d to name a revision that does not exist: %v", i%len(ways), err)
			}
		})
	}
	go func() { greedy.Wait(); close(refused) }()
	for over := false; !over; {
		select {
		case <-refused:
			over = true
		default:
		}
		if resp := c.find("needle", nil); !resp.Coverage.Complete || len(resp.Files) != 2 {
			t.Errorf("meanwhile: %v", resp.Coverage)
		}
	}
}
