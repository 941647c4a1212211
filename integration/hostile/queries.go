package hostile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/trawl-search/trawl/internal/catalog"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TypeRepos is how many queries TypeRepo has.
const TypeRepos = 528

// TypeRepo returns query i of those with an expensive r: under a type:repo, a different one in each.
// They look for foo in repos selected by name.
func TypeRepo(i int) string {
	return fmt.Sprintf(`(type:repo (r:(\w|/){%d}x or r:(r[d-f]p|%d){490} or r:.)) foo`, 900+i%99, i)
}

// FutureRevisions returns all ways to ask for a revision that does not exist, given a client of the
// search service, a query, and the page token of an answer to it.
func FutureRevisions(search searchv1.SearchServiceClient, query string, page []byte) []func(context.Context) error {
	const before = 1 + 16 + 8 // version, mark and score
	_, n := binary.Uvarint(page[before:])
	forged := append(binary.AppendUvarint(append([]byte(nil), page[:before]...), math.MaxInt64), page[before+n:]...)
	future := &searchv1.Consistency{Level: &searchv1.Consistency_AtLeast{AtLeast: catalog.EncodeToken(1 << 60)}}
	return []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := search.Search(ctx, &searchv1.SearchRequest{Query: query, Options: &searchv1.SearchOptions{Consistency: future}})
			return err
		},
		func(ctx context.Context) error {
			_, err := search.Search(ctx, &searchv1.SearchRequest{Query: query, PageToken: forged})
			return err
		},
		func(ctx context.Context) error {
			_, err := search.List(ctx, &searchv1.ListRequest{Query: query, Consistency: future})
			return err
		},
		func(ctx context.Context) error {
			_, err := search.GetFile(ctx, &searchv1.GetFileRequest{Repo: "host/one", Path: []byte("a.go"), Consistency: future})
			return err
		},
		func(ctx context.Context) error {
			stream, err := search.StreamSearch(ctx, &searchv1.StreamSearchRequest{
				Search: &searchv1.SearchRequest{Query: query, Options: &searchv1.SearchOptions{Consistency: future}},
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
}
