package search_test

import (
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestQueryThatKillsSearchers: retries carry a query from searcher to searcher. It kills three of
// four, and the last one is left for others.
func TestQueryThatKillsSearchers(t *testing.T) {
	c := start(t, 4, func(c *cluster) {
		for _, s := range c.searchers {
			s.files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
			s.dies = "killer"
		}
	})
	search := func(query string) (*searchv1.SearchResponse, error) {
		return c.Search(t.Context(), &searchv1.SearchRequest{Query: query})
	}
	resp, err := search("killer")
	if err != nil || resp.Coverage.Failed != 1 || len(resp.Files) != 0 {
		t.Fatalf("first: %v, %v", resp, err)
	}
	for range 2 {
		_, err = search("killer")
		if status.Code(err) != codes.FailedPrecondition || len(status.Convert(err).Details()) != 1 {
			t.Fatalf("again: %v", err)
		}
		retry, ok := status.Convert(err).Details()[0].(*errdetails.RetryInfo)
		if !ok || retry.RetryDelay.AsDuration() < time.Minute || retry.RetryDelay.AsDuration() > time.Hour {
			t.Errorf("details %v", status.Convert(err).Details())
		}
	}
	if resp, err = search("harmless"); err != nil || len(resp.Files) != 1 || !resp.Coverage.Complete {
		t.Errorf("another query: %v, %v", resp, err)
	}
}

// TestErrorsAreNoDeaths: searchers that report themselves as unavailable, or that cannot be
// reached, put no query into quarantine.
func TestErrorsAreNoDeaths(t *testing.T) {
	c := start(t, 2, func(c *cluster) {
		for _, s := range c.searchers {
			s.files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
		}
		c.searchers[0].addr = "127.0.0.1:1"
		c.searchers[1].fails = status.Error(codes.Unavailable, "going away")
	})
	for range 10 {
		if resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q"}); err != nil || resp.Coverage.Failed != 1 {
			t.Fatalf("%v, %v", resp, err)
		}
	}
}

// TestGetFileOfAShardThatIsMissing: searchers that lack a shard have not failed. Hedges are off: on
// a busy machine one can overtake a call.
func TestGetFileOfAShardThatIsMissing(t *testing.T) {
	c := start(t, 2, func(c *cluster) {
		c.shares.Hedges = 0
		for _, s := range c.searchers {
			s.files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
		}
		c.searchers[0].lacks[d(1)] = searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED
	})
	for range 50 {
		resp, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte("a")})
		if err != nil || string(resp.Content) != "content of a" {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	if gets := c.searchers[0].gets; gets != 50 {
		t.Errorf("the first searcher was asked %d times of 50", gets)
	}
}
