package serve_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// trailers is a call of gRPC that keeps its trailer.
type trailers struct {
	grpc.ServerTransportStream
	sent metadata.MD
}

func (c *trailers) SetTrailer(md metadata.MD) error {
	c.sent = metadata.Join(c.sent, md)
	return nil
}

// TestCallsReportTheirCost: the trailer of a call has the time that its shards had a
// processor, also of those whose search did not end well, and not the time that they waited
// for the bucket.
func TestCallsReportTheirCost(t *testing.T) {
	for _, c := range []struct {
		shards  []string
		within  time.Duration
		cost    searchapi.Cost
		partial bool
	}{
		{[]string{"good"}, time.Minute, searchapi.Cost{}, false},
		{[]string{"dear-1", "dear-2", "dear-3"}, time.Minute, searchapi.Cost{Processor: 3 * dearTime, Decoded: 3 * decodedByDear}, false},
		{[]string{"shown-dear"}, time.Minute, searchapi.Cost{Processor: dearTime}, false},
		{[]string{"dear-1", "bucket-1", "panic", "error"}, time.Minute, searchapi.Cost{Processor: dearTime, Decoded: decodedByDear}, true},
		{[]string{"dear-1"}, dearTime, searchapi.Cost{Processor: dearTime*855/1000 + dearLag, Decoded: decodedByDear}, true}, // a twentieth to answer, a tenth to show
	} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, c.shards...)
			call := &trailers{}
			ctx, cancel := context.WithTimeout(grpc.NewContextWithServerTransportStream(t.Context(), call), c.within)
			defer cancel()
			out := &stream{ctx: ctx}
			req := &searchv1.SearchRequest{Query: "q", Plan: planOf("r", c.shards...)}
			if err := s.StreamSearch(&searchv1.StreamSearchRequest{Search: req}, out); err != nil {
				t.Fatal(err)
			}
			if last := out.sent[len(out.sent)-1]; last.Coverage.Complete == c.partial {
				t.Errorf("%v: coverage %v", c.shards, last.Coverage)
			}
			got, ok := searchapi.CostOf(call.sent)
			if got.Processor = got.Processor.Round(time.Millisecond); !ok || got.Processor != c.cost.Processor.Round(time.Millisecond) || got.Decoded != c.cost.Decoded {
				t.Errorf("%v within %v: %v, %v; want %v", c.shards, c.within, got, ok, c.cost)
			}
		})
	}
}

// TestListsAndFilesReportTheirCost: they report bytes, too.
func TestListsAndFilesReportTheirCost(t *testing.T) {
	s := start(t, "good")
	for method, ask := range map[string]func(context.Context) error{
		"list": func(ctx context.Context) error {
			_, err := list(ctx, s, &searchv1.ListRequest{Query: "q", Plan: planOf("r", "good")})
			return err
		},
		"file": func(ctx context.Context) error {
			_, err := s.GetFile(ctx, &searchv1.GetFileRequest{Repo: "r", Path: []byte("good"), Plan: planOf("r", "good")})
			return err
		},
	} {
		call := &trailers{}
		if err := ask(grpc.NewContextWithServerTransportStream(t.Context(), call)); err != nil {
			t.Fatal(err)
		}
		if got, ok := searchapi.CostOf(call.sent); !ok || got.Processor <= 0 || got.Decoded != 1 {
			t.Errorf("%s: %v, %v", method, got, ok)
		}
	}
}
