package search_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// stuckCluster is two searchers with a shard each. The second one never answers. It is
// the Layouts and the Searchers of a service.
type stuckCluster struct {
	layout *search.Layout
	// noRoots means that the roots never come.
	noRoots bool
	// unread, if it is not nil, is the layout there is when time is over before roots come.
	unread *search.Layout
	// unreached means that the revision that a caller names never comes, and slow that the roots come when the time is over.
	unreached, slow bool
	// searches counts the searches of files.
	searches atomic.Int64
}

// stuckRepo is in the shard of the searcher that never answers.
const stuckRepo = "repo1"

func newStuckCluster(t testing.TB) *stuckCluster {
	t.Helper()
	return &stuckCluster{layout: stuckLayout(t, 1)}
}

// stuckLayout is the layout of two repos.
func stuckLayout(t testing.TB, revision int64) *search.Layout {
	t.Helper()
	var roots []*catalogv1.Root
	for i := range 2 {
		digest := d(i)
		roots = append(roots, &catalogv1.Root{
			Repo: fmt.Sprint("repo", i), Generation: 1, Shards: []*catalogv1.ShardRef{{Digest: digest[:], SizeBytes: 1}},
		})
	}
	layout, err := search.NewLayout(revision, roots)
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

func (c *stuckCluster) Reach(ctx context.Context, _ *searchv1.Consistency, _ int64) error {
	if !c.unreached {
		return nil
	}
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

func (c *stuckCluster) At(ctx context.Context, _ *searchv1.Consistency, _ int64) (*search.Layout, error) {
	if c.noRoots || c.slow {
		<-ctx.Done()
	}
	if c.noRoots {
		return c.unread, status.FromContextError(ctx.Err()).Err()
	}
	return c.layout, nil
}

func (c *stuckCluster) Candidates(d searchapi.Digest) []fanout.Target {
	id := fmt.Sprint(d[0])
	return []fanout.Target{{ID: id, Address: id}}
}

func (c *stuckCluster) Client(address string) (searchv1.SearchServiceClient, error) {
	return &stuckSearcher{stuck: address == "1", searches: &c.searches}, nil
}

// stuckSearcher finds nothing, at once or never.
type stuckSearcher struct {
	searchv1.SearchServiceClient
	stuck    bool
	searches *atomic.Int64
}

func (s *stuckSearcher) find(ctx context.Context, plan *searchv1.Plan) (*searchv1.Coverage, error) {
	if s.stuck {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	var shards []searchapi.Shard
	for _, p := range plan.Shards {
		shards = append(shards, searchapi.Shard{Digest: searchapi.Digest(p.Digest)})
	}
	account := searchapi.NewAccount(shards)
	for _, shard := range shards {
		account.Searched(shard.Digest)
	}
	return account.Coverage(), nil
}

func (s *stuckSearcher) StreamSearch(ctx context.Context, req *searchv1.StreamSearchRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[searchv1.StreamSearchResponse], error) {
	s.searches.Add(1)
	found, err := s.find(ctx, req.Search.Plan)
	return &oneMessage[searchv1.StreamSearchResponse]{message: &searchv1.StreamSearchResponse{Coverage: found}}, err
}

func (s *stuckSearcher) StreamList(ctx context.Context, req *searchv1.StreamListRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[searchv1.StreamListResponse], error) {
	found, err := s.find(ctx, req.List.Plan)
	return &oneMessage[searchv1.StreamListResponse]{message: &searchv1.StreamListResponse{Coverage: found}}, err
}

func (s *stuckSearcher) GetFile(ctx context.Context, req *searchv1.GetFileRequest, _ ...grpc.CallOption) (*searchv1.GetFileResponse, error) {
	_, err := s.find(ctx, req.Plan)
	return &searchv1.GetFileResponse{}, err
}

// TestAnswersBeforeTheDeadline: whatever a call asks for, and whatever it waits for, a tenth of the
// caller's time is left when the answer comes: at least 5 ms, at most 250 ms, and at most half of
// the time. Until then the router waits. The clock is simulated, so an answer is late only if the
// router decides so.
func TestAnswersBeforeTheDeadline(t *testing.T) {
	for _, limit := range []struct{ deadline, answered time.Duration }{
		{4 * time.Millisecond, 2 * time.Millisecond},
		{20 * time.Millisecond, 15 * time.Millisecond},
		{100 * time.Millisecond, 90 * time.Millisecond},
		{time.Second, 900 * time.Millisecond},
		{10 * time.Second, 9750 * time.Millisecond},
		{time.Hour, 19750 * time.Millisecond}, // at most 20 s are given
		{0, 7750 * time.Millisecond},          // a caller without a deadline gets 8 s
	} {
		for name, ask := range map[string]func(context.Context, *search.Service) error{
			"search": searchOnce, "stream": streamAll, "list": listOnce, "list stream": listAll, "file": stuckFile,
		} {
			for _, noRoots := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/no roots %v", name, limit.deadline, noRoots), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						c := newStuckCluster(t)
						c.noRoots = noRoots
						s := newService(t, search.Config{Budget: search.Budget{Default: 8 * time.Second, Most: 20 * time.Second}, MaxQueries: 1}, c, c)
						ctx := t.Context()
						if limit.deadline > 0 {
							var cancel context.CancelFunc
							ctx, cancel = context.WithTimeout(ctx, limit.deadline)
							defer cancel()
						}
						start := time.Now()
						err := ask(ctx, s)
						if took := time.Since(start); took != limit.answered {
							t.Errorf("answered after %v, want %v", took, limit.answered)
						}
						want := codes.OK // the part that was found
						if noRoots || name == "file" {
							want = codes.DeadlineExceeded
						}
						if status.Code(err) != want {
							t.Errorf("got %v, want %v", err, want)
						}
					})
				})
			}
		}
	}
}

// TestTimeIsOverBeforeASearcherIsAsked: whatever takes all the time before the first searcher is asked for files, a search
// answers that it reached no shard, and a list too. Only a caller who requires a complete answer gets an error. None of what is not known to be current is answered.
func TestTimeIsOverBeforeASearcherIsAsked(t *testing.T) {
	const limit = time.Second
	for name, c := range map[string]struct {
		change func(*stuckCluster)
		query  string
		// answered is when the answer comes, and anew says that it has no token.
		answered time.Duration
		anew     bool
	}{
		"roots":     {func(c *stuckCluster) { c.noRoots = true }, "q", 900 * time.Millisecond, true},
		"revision":  {func(c *stuckCluster) { c.unreached, c.noRoots = true, true }, "q", 900 * time.Millisecond, true},
		"names":     {func(c *stuckCluster) { c.slow = true }, "q r:repo", 900 * time.Millisecond, false},
		"type:repo": {func(*stuckCluster) {}, "q type:repo x", 900 * time.Millisecond, false},
		"timeout:":  {func(*stuckCluster) {}, "timeout:300ms q type:repo x", 300 * time.Millisecond, false},
	} {
		for _, require := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, require), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cluster := newStuckCluster(t)
					cluster.unread = stuckLayout(t, 0)
					c.change(cluster)
					s := newService(t, search.Config{Budget: search.Budget{Default: time.Minute, Most: time.Minute}, MaxQueries: 1}, cluster, cluster)
					check := func(door string, files int, coverage *searchv1.Coverage, token []byte, err error) {
						t.Helper()
						if !require && (len(token) == 0) != c.anew {
							t.Errorf("%s: token %q", door, token)
						}
						revision, _ := catalog.DecodeToken(token)
						switch {
						case require && (status.Code(err) != codes.DeadlineExceeded || len(status.Convert(err).Details()) == 0):
							t.Errorf("%s: require_complete: %v", door, err)
						case !require && (err != nil || files > 0 || coverage.Complete || coverage.NotReached != 2 || len(coverage.Uncovered) != 2 || (revision == 0) != c.anew):
							t.Errorf("%s: %d files as of %d, coverage %v, %v", door, files, revision, coverage, err)
						}
					}
					asked := func() (context.Context, context.CancelFunc, time.Time) {
						ctx, cancel := context.WithTimeout(t.Context(), limit)
						return ctx, cancel, time.Now()
					}
					req := &searchv1.SearchRequest{Query: c.query, Options: &searchv1.SearchOptions{SyntaxVersion: 2, RequireComplete: require}}
					ctx, cancel, start := asked()
					resp, err := s.Search(ctx, req)
					if took := time.Since(start); took != c.answered {
						t.Errorf("answered after %v", took)
					}
					cancel()
					check("search", len(resp.GetFiles()), resp.GetCoverage(), resp.GetRevisionToken(), err)
					if c.anew && resp.GetEmpty() != nil {
						t.Errorf("it says that %v were searched", resp.Empty)
					}
					ctx, cancel, _ = asked()
					out := &stream{ctx: ctx}
					err = s.StreamSearch(&searchv1.StreamSearchRequest{Search: req}, out)
					cancel()
					last := &searchv1.StreamSearchResponse{}
					if len(out.sent) > 0 {
						last = out.sent[len(out.sent)-1]
					}
					check("stream", len(out.sent)-1, last.Coverage, last.RevisionToken, err)
					if !require && c.answered == 900*time.Millisecond { // timeout: is for files
						ctx, cancel, _ = asked()
						list, err := s.List(ctx, &searchv1.ListRequest{Query: c.query})
						cancel()
						check("list", len(list.GetRepos()), list.GetCoverage(), list.GetRevisionToken(), err)
					}
					if n := cluster.searches.Load(); n > 0 {
						t.Errorf("searchers were asked for files %d times", n)
					}
				})
			})
		}
	}
}

func listOnce(ctx context.Context, s *search.Service) error {
	_, err := s.List(ctx, &searchv1.ListRequest{})
	return err
}

func listAll(ctx context.Context, s *search.Service) error {
	return s.StreamList(&searchv1.StreamListRequest{List: &searchv1.ListRequest{}}, &listStream{ctx: ctx})
}

// listStream drops what is sent.
type listStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *listStream) Context() context.Context              { return s.ctx }
func (*listStream) Send(*searchv1.StreamListResponse) error { return nil }

func stuckFile(ctx context.Context, s *search.Service) error {
	_, err := s.GetFile(ctx, &searchv1.GetFileRequest{Repo: stuckRepo, Path: []byte("a")})
	return err
}
