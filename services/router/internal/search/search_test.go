package search_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	reasonCorrupt    = searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT
	reasonNotCovered = searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED
	reasonDeadline   = searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE
)

func d(n int) searchapi.Digest { return searchapi.Digest{byte(n)} }

func file(repo, path string, score float64) *searchv1.FileMatch {
	return &searchv1.FileMatch{Repo: repo, Path: []byte(path), Score: score, Blob: []byte(path)}
}

// TestPagesAreTheWholeOrder: whatever shards and searchers the files are spread
// over, and whatever sizes the pages have, they are all files in order, once.
func TestPagesAreTheWholeOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all []*searchv1.FileMatch
		n := rapid.IntRange(1, 3).Draw(rt, "searchers")
		c := start(rt, n, func(c *cluster) {
			c.places = make(map[searchapi.Digest][]int)
			for i := range rapid.IntRange(0, 40).Draw(rt, "files") {
				f := file("r", fmt.Sprint("path", i), float64(rapid.IntRange(0, 3).Draw(rt, "score")))
				shard := d(rapid.IntRange(0, 6).Draw(rt, "shard"))
				on := int(shard[0]) % n
				c.places[shard] = []int{on}
				c.searchers[on].files[shard] = append(c.searchers[on].files[shard], f)
				all = append(all, f)
			}
		})
		slices.SortFunc(all, inOrder)
		var got []*searchv1.FileMatch
		for token, page := []byte(nil), 0; ; page++ {
			size := rapid.IntRange(1, 15).Draw(rt, "page size")
			resp, err := c.Search(t.Context(), &searchv1.SearchRequest{
				Query: "q", PageToken: token, Options: &searchv1.SearchOptions{MaxFiles: uint32(size)},
			})
			if err != nil {
				rt.Fatal(err)
			}
			if len(resp.Files) > size || page > 0 && len(resp.Files) == 0 || !resp.Coverage.Complete {
				rt.Fatalf("page %d of %d has %d files, coverage %v", page, size, len(resp.Files), resp.Coverage)
			}
			got = append(got, resp.Files...)
			if token = resp.NextPageToken; token == nil {
				break
			}
		}
		if !slices.EqualFunc(got, all, func(a, b *searchv1.FileMatch) bool { return proto.Equal(a, b) }) {
			rt.Fatalf("pages give %d files: %v\nwant %d: %v", len(got), got, len(all), all)
		}
	})
}

// TestPagesAroundLongPaths: a page does not end at a path that no token can hold.
func TestPagesAroundLongPaths(t *testing.T) {
	long := strings.Repeat("x", 5000)
	c := start(t, 1, func(c *cluster) {
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "a", 4), file("r", long, 3), file("r", "b", 2), file("r", "c", 1)}
	})
	var lengths []int
	for token := []byte(nil); ; {
		resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", PageToken: token, Options: &searchv1.SearchOptions{MaxFiles: 2}})
		if err != nil {
			t.Fatal(err)
		}
		lengths = append(lengths, len(resp.Files))
		if token = resp.NextPageToken; token == nil {
			break
		}
	}
	if !slices.Equal(lengths, []int{1, 2, 1}) {
		t.Errorf("pages of %v files", lengths)
	}
	_, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{MaxFiles: 1}})
	if err != nil {
		t.Fatalf("the first page ends well: %v", err)
	}
}

func TestPageTokenOfAnotherQuery(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1), file("r", "b", 1)}
	})
	one := &searchv1.SearchOptions{MaxFiles: 1}
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", Options: one})
	if err != nil || resp.NextPageToken == nil {
		t.Fatalf("%v %v", resp, err)
	}
	_, err = c.Search(t.Context(), &searchv1.SearchRequest{Query: "other", Options: one, PageToken: resp.NextPageToken})
	wantField(t, err, codes.InvalidArgument, "page_token")
	_, err = c.Search(t.Context(), &searchv1.SearchRequest{Plan: &searchv1.Plan{}})
	wantField(t, err, codes.InvalidArgument, "plan")
	_, err = c.Search(t.Context(), &searchv1.SearchRequest{Query: "a or"})
	wantField(t, err, codes.InvalidArgument, "query")
}

func wantField(t *testing.T, err error, code codes.Code, field string) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("got %v, want %v", err, code)
	}
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok && bad.FieldViolations[0].Field == field {
			return
		}
	}
	t.Errorf("no detail names the field %s: %v", field, err)
}

// TestHungSearcher: a searcher that never answers costs its shards and no more.
// What the other found arrives before the caller's deadline.
func TestHungSearcher(t *testing.T) {
	c := start(t, 2, func(c *cluster) {
		c.places = map[searchapi.Digest][]int{d(1): {0}, d(2): {1}}
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
		c.searchers[1].files[d(2)] = []*searchv1.FileMatch{file("r", "b", 1)}
		c.searchers[1].hangs = true
	})
	limit := 300 * time.Millisecond
	for answers := 0; answers < 5; {
		resp, err := c.within(limit, &searchv1.SearchRequest{Query: "q"})
		if (err != nil || resp.Coverage.Searched == 0) && limit < time.Minute {
			limit *= 2 // a slow machine: it was not enough for the one that answers
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		answers++
		cov := resp.Coverage
		if len(resp.Files) != 1 || cov.Complete || cov.Searched != 1 || cov.NotReached != 1 || cov.Uncovered[0].Reason != reasonDeadline {
			t.Fatalf("files %v, coverage %v", resp.Files, cov)
		}
	}
	_, err := c.within(limit, &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{RequireComplete: true}})
	if status.Code(err) != codes.DeadlineExceeded || len(status.Convert(err).Details()) == 0 {
		t.Errorf("require_complete: %v", err)
	}
}

// within asks with a time limit.
func (c *cluster) within(limit time.Duration, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return c.Search(ctx, req)
}

// TestRefusedInPart: when some searchers have no room for a query, the answer is what the others
// found, even if none finished a shard. When all refuse, the caller gets a time to retry.
func TestRefusedInPart(t *testing.T) {
	c := start(t, 2, func(c *cluster) {
		c.places = map[searchapi.Digest][]int{d(1): {0}, d(2): {1}}
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
		c.searchers[1].files[d(2)] = []*searchv1.FileMatch{file("r", "b", 1)}
		c.searchers[0].lacks[d(1)] = reasonDeadline
		c.searchers[1].fails = searchapi.Overloaded("too much to do", time.Second)
	})
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q"})
	if err != nil || len(resp.Files) != 1 || resp.Coverage.Complete || len(resp.Coverage.Uncovered) != 2 {
		t.Errorf("one refused: %v, %v", resp, err)
	}
	_, err = c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{RequireComplete: true}})
	if !searchapi.IsOverloaded(err) {
		t.Errorf("require_complete: %v", err)
	}
	c.searchers[0].mu.Lock()
	c.searchers[0].fails = searchapi.Overloaded("too much to do", time.Second)
	c.searchers[0].mu.Unlock()
	if _, err = c.Search(t.Context(), &searchv1.SearchRequest{Query: "q"}); !searchapi.IsOverloaded(err) {
		t.Errorf("all refused: %v", err)
	}
}

func TestFailOver(t *testing.T) {
	files := []*searchv1.FileMatch{file("r", "a", 1), file("r", "b", 2)}
	for name, breaks := range map[string]func(*searcher){
		"unavailable": func(s *searcher) { s.fails = status.Error(codes.Unavailable, "going away") },
		"broken":      func(s *searcher) { s.fails = status.Error(codes.Internal, "bug") },
		"not covered": func(s *searcher) { s.lacks[d(1)] = reasonNotCovered },
		"corrupt":     func(s *searcher) { s.lacks[d(1)] = reasonCorrupt },
		"gone":        func(s *searcher) { s.addr = "127.0.0.1:1" },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 2, func(c *cluster) {
				for _, s := range c.searchers {
					s.files[d(1)] = files
				}
				breaks(c.searchers[0])
			})
			resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{RequireComplete: true}})
			if err != nil || len(resp.Files) != 2 || !resp.Coverage.Complete || resp.Statistics.FilesMatched != 2 {
				t.Errorf("%v, %v", resp, err)
			}
			got, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte("b")})
			if err != nil || string(got.Content) != "content of b" {
				t.Errorf("GetFile: %v, %v", got, err)
			}
		})
	}
}

// TestRouterWithAnotherClock: all searchers refuse a router whose clock is far behind theirs. Its callers are not told that they themselves
// are unknown. An answer has no files, accounts for every shard as failed, and refers to the log, which names the clocks. A query that needs a
// whole answer fails. Once the clock is right, answers are complete again.
func TestRouterWithAnotherClock(t *testing.T) {
	c := start(t, 2, func(c *cluster) {
		for _, s := range c.searchers {
			s.files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
			s.files[d(2)] = []*searchv1.FileMatch{file("s", "a", 1)}
		}
	})
	set := func(err error) {
		for _, s := range c.searchers {
			s.mu.Lock()
			s.fails = err
			s.mu.Unlock()
		}
	}
	set(status.Error(codes.Unauthenticated, "the seal was good until an hour ago; do the clocks differ?"))
	for range 20 { // more than open a breaker
		resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q"})
		if cov := resp.GetCoverage(); err != nil || len(resp.Files) > 0 || cov.Complete || cov.Failed != 2 || cov.Searched != 0 || len(cov.Uncovered) != 2 ||
			!strings.Contains(cov.Uncovered[0].Message, "the router's log has the cause") {
			t.Fatalf("%v, %v", resp, err)
		}
		_, err = c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{RequireComplete: true}})
		if status.Code(err) != codes.FailedPrecondition {
			t.Fatalf("require_complete: %v", err)
		}
		list, err := c.List(t.Context(), &searchv1.ListRequest{Query: "q"})
		if err != nil || list.GetCoverage().GetComplete() || len(list.GetRepos()) > 0 {
			t.Fatalf("list: %v, %v", list, err)
		}
		if _, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte("a")}); status.Code(err) != codes.Unavailable {
			t.Fatalf("get file: %v", err)
		}
	}
	set(nil)
	if resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q"}); err != nil || len(resp.Files) != 2 || !resp.Coverage.Complete {
		t.Errorf("with the right clock: %v, %v", resp, err)
	}
}

func TestRequireComplete(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
		c.searchers[0].files[d(2)] = []*searchv1.FileMatch{file("s", "a", 1)}
		c.searchers[0].lacks[d(2)] = reasonCorrupt
	})
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q"})
	if err != nil || resp.Coverage.Complete || resp.Coverage.Failed != 1 || resp.Coverage.Uncovered[0].Repos[0] != "s" {
		t.Fatalf("%v, %v", resp, err)
	}
	_, err = c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{RequireComplete: true}})
	if status.Code(err) != codes.FailedPrecondition {
		t.Fatalf("require_complete: %v", err)
	}
	if cov, ok := status.Convert(err).Details()[0].(*searchv1.Coverage); !ok || cov.Failed != 1 || len(cov.Uncovered) != 1 {
		t.Errorf("details: %v", status.Convert(err).Details())
	}
}

func TestLimitsAreLoweredAndTold(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.cfg.Limits.MaxFiles = 2
		for i := range 5 {
			c.searchers[0].files[d(1)] = append(c.searchers[0].files[d(1)], file("r", fmt.Sprint(i), 1))
		}
	})
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Options: &searchv1.SearchOptions{MaxFiles: 100, MaxBytes: 8 << 20}})
	if err != nil || len(resp.Files) != 2 || !slices.Equal(resp.Statistics.Clamped, []string{"options.max_files", "options.max_bytes"}) {
		t.Errorf("%v, %v", resp, err)
	}
	if resp.NextPageToken == nil || resp.RevisionToken == nil || resp.Statistics.Duration == nil {
		t.Errorf("something is missing from %v", resp)
	}
}

// TestCallerGone: when a caller goes away, the work of searchers for its call ends, long before the deadline.
func TestCallerGone(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
		c.searchers[0].hangs, c.searchers[0].began, c.searchers[0].gone = true, make(chan struct{}, 10), make(chan time.Duration, 10)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-c.searchers[0].began
		cancel()
	}()
	if _, err := c.Search(ctx, &searchv1.SearchRequest{Query: "q"}); status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	if given := <-c.searchers[0].gone; given < time.Second {
		t.Errorf("the searcher was given %v: its work may have ended with that", given)
	}
}

// TestTimeoutOfQuery: timeout: ends a search before the deadline of its caller, and the answer says what was not reached.
func TestTimeoutOfQuery(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
		c.searchers[0].hangs, c.searchers[0].began, c.searchers[0].gone = true, make(chan struct{}, 10), make(chan time.Duration, 10)
	})
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q timeout:200ms", Options: &searchv1.SearchOptions{SyntaxVersion: 2}})
	if err != nil || resp.Coverage.Complete || resp.Coverage.NotReached != 1 || resp.Empty.GetRepos() != 1 {
		t.Errorf("%v, %v", resp, err)
	}
	if len(c.searchers[0].began) > 0 { // and the time did not end on the way to it
		if given := <-c.searchers[0].gone; given > 200*time.Millisecond {
			t.Errorf("the searcher was given %v", given)
		}
	}
}
