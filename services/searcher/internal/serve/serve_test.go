package serve_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/serve"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// act is a shard of a test that does what its content says.
type act string

func (a act) Find(ctx context.Context, q *search.Query, opts search.Options) (*search.Found, error) {
	r := &search.Found{Stats: search.Stats{FilesMatched: 1}, Options: opts}
	if opts.Explain {
		r.Explanation = &search.Explanation{Candidates: 1, Repo: "r", Repos: 1}
	}
	if strings.HasPrefix(string(a), "dense-") {
		r.Stats, r.Hits = search.Stats{FilesMatched: 100, Matches: 100}, denseHits(string(a), opts)
		return r, nil
	}
	if opts.Repos == nil || opts.Repos(0) {
		r.Hits = []search.Hit{{Key: search.Key{Repo: "r", Path: []byte(a), Score: float64(len(a))}}}
	}
	if strings.HasPrefix(string(a), "dear-") {
		r.Incomplete, r.Stats.BytesDecoded = dear(ctx), decodedByDear
	}
	if strings.HasPrefix(string(a), "bucket-") {
		r.Incomplete = read(ctx)
	}
	switch a {
	case "panic":
		panic("a bug")
	case "damaged":
		return nil, &format.CorruptError{File: "f", Section: "postings", Reason: "test"}
	case "error":
		return nil, errors.New("something else")
	case "slow":
		<-ctx.Done()
		r.Incomplete = ctx.Err()
	}
	return r, nil
}

func (a act) Show(ctx context.Context, found *search.Found, n int) (*search.Result, error) {
	r := &search.Result{Stats: search.Stats{UnitsDecoded: uint64(n)}}
	if found.Explanation != nil {
		r.Explanation = &search.Explanation{Other: search.Reads{Units: uint64(n)}}
	}
	switch a {
	case "panic-when-shown":
		panic("a bug")
	case "damaged-when-shown":
		return nil, &format.CorruptError{File: "f", Section: "units", Reason: "test"}
	case "error-when-shown":
		return nil, errors.New("something else")
	case "shown-dear":
		r.Incomplete = dear(ctx)
	case "slow-when-shown":
		<-ctx.Done()
		r.Incomplete = ctx.Err()
		return r, nil
	}
	var size int64
	for _, h := range found.Hits[:n] {
		f := search.FileMatch{Repo: h.Key.Repo, Path: h.Key.Path, Score: h.Key.Score, MatchCount: 1}
		if strings.HasPrefix(string(a), "dense-") && found.Options.MaxMatchesPerFile > 0 {
			f.Chunks = denseChunks()
		}
		if size += f.Size(); found.Options.MaxBytes > 0 && size > found.Options.MaxBytes && len(r.Files) > 0 {
			r.Cut = true
			break
		}
		r.Files = append(r.Files, f)
	}
	return r, nil
}

func (a act) Count(_ context.Context, q *search.Query, _ search.Options, by []search.Facet) (*search.Counted, error) {
	counted := &search.Counted{Facets: make([]search.FacetCounts, len(by))}
	for i := range by {
		counted.Facets[i].Add(search.FacetValue{Name: q.String()}, uint64(by[i])+1)
	}
	return counted, nil
}

func (a act) List(ctx context.Context, q *search.Query, opts search.ListOptions) (*search.ListResult, error) {
	return &search.ListResult{Repos: []shard.RepoStats{{
		Repo: docstore.Repo{Name: q.String()}, Documents: 1,
	}}, BytesDecoded: 1}, nil
}

func (a act) File(_ context.Context, repo string, path []byte, _ string, opts search.Options, part search.Part) (*search.File, error) {
	switch {
	case repo == "hidden" || opts.Repos != nil && !opts.Repos(0):
		return nil, search.ErrNoFile
	case a == "damaged":
		return nil, &format.CorruptError{File: "f", Section: "docs", Reason: "test"}
	case string(path) != string(a):
		return nil, search.ErrNoFile
	}
	content := repo[min(part.Offset, uint64(len(repo))):]
	if part.MaxBytes > 0 {
		content = content[:min(part.MaxBytes, uint64(len(content)))]
	}
	return &search.File{Content: []byte(content), Size: uint64(len(repo)), Skip: docstore.Binary}, nil
}

func (act) Close() error { return nil }

func digestOf(content string) searchapi.Digest { return sha256.Sum256([]byte(content)) }

type applied struct{ err error }

func (a applied) WaitApplied(context.Context, int64) error { return a.err }

// start makes a service whose shards are loaded, except those named "missing".
func start(t testing.TB, contents ...string) *serve.Service {
	t.Helper()
	return startWith(t, serve.Config{}, contents...)
}

// startWith is start with further settings.
func startWith(t testing.TB, cfg serve.Config, contents ...string) *serve.Service {
	t.Helper()
	return serviceOf(cfg, storeOf(t, t.TempDir(), openAct, contents...))
}

func openAct(path string) (shardcache.Shard, error) {
	content, err := os.ReadFile(path)
	return act(content), err
}

// storeOf makes a store in a folder, whose shards have these contents and are loaded, except those
// named "missing".
func storeOf(t testing.TB, dir string, open func(string) (shardcache.Shard, error), contents ...string) *shardcache.Store {
	t.Helper()
	b := bucket.NewMemory(64 << 20)
	stored := shardcache.NewMetrics(prometheus.NewRegistry())
	s, err := shardcache.New(shardcache.Config{Dir: dir, Loads: 2, Retry: time.Hour}, b, open, slog.New(slog.DiscardHandler), stored)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	var refs []shardcache.Ref
	for _, c := range contents {
		d := digestOf(c)
		refs = append(refs, shardcache.Ref{Digest: d, Key: d.String(), Size: int64(len(c))})
		if c == "missing" {
			continue
		}
		if err := b.Put(t.Context(), d.String(), strings.NewReader(c), bucket.PutOptions{Size: int64(len(c))}); err != nil {
			t.Fatal(err)
		}
	}
	s.Want(1, refs)
	for counts, changed := s.Counts(); !counts.Settled(); counts, changed = s.Counts() {
		<-changed
	}
	return s
}

func serviceOf(cfg serve.Config, s *shardcache.Store) *serve.Service {
	cfg.Parallel, cfg.LoadWait = 2, 20*time.Millisecond
	metrics := serve.NewMetrics(prometheus.NewRegistry())
	return serve.New(cfg, s, applied{}, noop.NewTracerProvider().Tracer(""), metrics, slog.New(slog.DiscardHandler))
}

func planOf(repo string, contents ...string) *searchv1.Plan {
	p := &searchv1.Plan{}
	for _, c := range contents {
		d := digestOf(c)
		shard := searchapi.Shard{Digest: d}
		if repo != "other" && repo != "s" { // each shard has one
			shard.Repos = searchapi.AllRepos()
		}
		p.Shards = append(p.Shards, shard.Planned())
	}
	return p
}

// TestEveryEndOfAShard: however the search of a shard ends, the others are answered, the coverage
// names the reason, and a failed shard contributes nothing.
func TestEveryEndOfAShard(t *testing.T) {
	shards := []string{"good", "panic", "damaged", "error", "slow", "missing", "panic-when-shown", "damaged-when-shown", "error-when-shown"}
	s := start(t, shards...)
	plan := planOf("r", append(shards, "stranger")...)
	resp := inTime(t, s, &searchv1.SearchRequest{Query: "q", Plan: plan})
	want := map[string]searchv1.UncoveredReason{
		"panic":    searchv1.UncoveredReason_UNCOVERED_REASON_ERROR,
		"damaged":  searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT,
		"error":    searchv1.UncoveredReason_UNCOVERED_REASON_ERROR,
		"slow":     searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE,
		"missing":  searchv1.UncoveredReason_UNCOVERED_REASON_ERROR,
		"stranger": searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED,

		"panic-when-shown":   searchv1.UncoveredReason_UNCOVERED_REASON_ERROR,
		"damaged-when-shown": searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT,
		"error-when-shown":   searchv1.UncoveredReason_UNCOVERED_REASON_ERROR,
	}
	checkUncovered(t, resp.Coverage, want)
	if resp.Coverage.Requested != 10 || resp.Coverage.Searched != 1 || resp.Coverage.InPart != 1 || resp.Coverage.Complete {
		t.Errorf("coverage %v", resp.Coverage)
	}
	var paths []string
	for _, f := range resp.Files {
		paths = append(paths, string(f.Path))
	}
	// The slow one's files so far stand; equal scores come in order of path.
	if got := strings.Join(paths, " "); got != "good slow" {
		t.Errorf("files %q", got)
	}
	if resp.Statistics.FilesMatched != 2 {
		t.Errorf("statistics %v", resp.Statistics)
	}
	// What was found to be damaged is not served any more.
	again := inTime(t, s, &searchv1.SearchRequest{Query: "q", Plan: planOf("r", "good", "damaged-when-shown")})
	checkUncovered(t, again.Coverage, map[string]searchv1.UncoveredReason{"damaged-when-shown": want["damaged-when-shown"]})
}

// TestNotShownInTime: files that are not shown before the deadline are missing, and their shard is
// not covered; the files of other shards are there, and all found files are counted.
func TestNotShownInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shards := []string{"slow", "slow-when-shown", "good", "dear-1"}
		s := start(t, shards...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		resp, err := searchAll(ctx, s, &searchv1.SearchRequest{Query: "q", Plan: planOf("r", shards...)})
		if err != nil || time.Since(began) >= time.Second {
			t.Fatalf("after %v: %v, %v", time.Since(began), resp, err)
		}
		checkUncovered(t, resp.Coverage, map[string]searchv1.UncoveredReason{
			"slow":            searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE,
			"slow-when-shown": searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE,
		})
		var paths []string
		for _, f := range resp.Files {
			paths = append(paths, string(f.Path))
		}
		if got := strings.Join(paths, " "); got != "dear-1 good slow" || resp.Statistics.FilesMatched != 4 || resp.Coverage.InPart != 2 {
			t.Errorf("files %q, statistics %v, coverage %v", got, resp.Statistics, resp.Coverage)
		}
	})
}

// TestOnlyTheBestAreShown: of the files of all shards no more are shown than wanted.
func TestOnlyTheBestAreShown(t *testing.T) {
	shards := []string{"dense-a", "dense-b", "dense-c", "dense-d", "dense-e", "dense-f", "dense-g", "dense-h"}
	s := start(t, shards...)
	resp, err := searchAll(t.Context(), s, &searchv1.SearchRequest{
		Query: "q", Plan: planOf("r", shards...), Options: &searchv1.SearchOptions{MaxFiles: 50, MaxBytes: 64 << 20},
	})
	if err != nil || len(resp.Files) != 50 || resp.Statistics.UnitsDecoded != 50 {
		t.Errorf("%d files of %d that were shown, %v", len(resp.Files), resp.Statistics.UnitsDecoded, err)
	}
}

// inTime returns an answer for which at most one shard, the one named "slow", is late. On a slow
// machine that takes more time.
func inTime(t *testing.T, s *serve.Service, req *searchv1.SearchRequest) *searchv1.SearchResponse {
	t.Helper()
	for limit := 200 * time.Millisecond; ; limit *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		resp, err := searchAll(ctx, s, req)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		late := 0
		for _, u := range resp.Coverage.Uncovered {
			if u.Reason == searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE {
				late++
			}
		}
		if late <= 1 || limit > 10*time.Second {
			return resp
		}
	}
}

func checkUncovered(t *testing.T, c *searchv1.Coverage, want map[string]searchv1.UncoveredReason) {
	t.Helper()
	if len(c.Uncovered) != len(want) {
		t.Errorf("%d shards are uncovered, want %d", len(c.Uncovered), len(want))
	}
	for name, reason := range want {
		d := digestOf(name)
		found := false
		for _, u := range c.Uncovered {
			if string(u.Digest) == string(d[:]) {
				found = true
				if u.Reason != reason || u.Message == "" {
					t.Errorf("%s: %v", name, u)
				}
			}
		}
		if !found {
			t.Errorf("%s is not named", name)
		}
	}
}

func TestOnlyPlans(t *testing.T) {
	s := start(t, "good")
	_, err := searchAll(t.Context(), s, &searchv1.SearchRequest{Query: "q"})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("without a plan: %v", err)
	}
	_, err = list(t.Context(), s, &searchv1.ListRequest{})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("list without a plan: %v", err)
	}
	_, err = searchAll(t.Context(), s, &searchv1.SearchRequest{Query: "(", Plan: planOf("r", "good")})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a bad query: %v", err)
	}
	_, err = searchAll(t.Context(), s, &searchv1.SearchRequest{Query: "(type:repo x)", Plan: planOf("r", "good")})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("an unresolved type:repo: %v", err)
	}
	resp, err := searchAll(t.Context(), s, &searchv1.SearchRequest{Query: "q", Plan: planOf("other", "good")})
	if err != nil || len(resp.Files) != 0 {
		t.Errorf("a repo that the plan does not allow: %v, %v", resp, err)
	}
}

// TestListOfTheNextTypeRepo: a plan that resolves fewer type:repo than there
// are asks for the next one.
func TestListOfTheNextTypeRepo(t *testing.T) {
	s := start(t, "good")
	req := &searchv1.ListRequest{Query: "(type:repo aaa) (type:repo bbb) ccc", Plan: planOf("r", "good")}
	for i, want := range []string{"aaa", "bbb", "ccc"} {
		resp, err := list(t.Context(), s, req)
		if err != nil || !resp.Coverage.Complete || !strings.Contains(resp.Repos[0].Name, want) {
			t.Fatalf("with %d resolved: %v, %v", i, resp, err)
		}
		req.Plan.Resolved = append(req.Plan.Resolved, &searchv1.RepoNames{Names: []string{"r"}})
	}
}

func TestGetFile(t *testing.T) {
	s := start(t, "good", "error", "damaged")
	get := func(repo, path string, shards ...string) (*searchv1.GetFileResponse, error) {
		return s.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: repo, Path: []byte(path), Plan: planOf("r", shards...)})
	}
	if resp, err := get("r", "good", "error", "good"); err != nil || string(resp.Content) != "r" || resp.SkipReason != searchv1.SkipReason_SKIP_REASON_BINARY {
		t.Errorf("%v, %v", resp, err)
	}
	for name, c := range map[string]struct {
		repo, path string
		shards     []string
		want       codes.Code
	}{
		"not there":               {"r", "none", []string{"good", "error"}, codes.NotFound},
		"not allowed":             {"hidden", "good", []string{"good"}, codes.NotFound},
		"a shard is not held":     {"r", "none", []string{"good", "stranger"}, codes.Unavailable},
		"a shard is damaged":      {"r", "none", []string{"good", "damaged"}, codes.Unavailable},
		"none of the shards held": {"r", "good", []string{"stranger"}, codes.Unavailable},
	} {
		if _, err := get(c.repo, c.path, c.shards...); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

type stream struct {
	grpc.ServerStream
	ctx  context.Context
	sent []*searchv1.StreamSearchResponse
}

func (s *stream) Context() context.Context { return s.ctx }
func (s *stream) Send(r *searchv1.StreamSearchResponse) error {
	s.sent = append(s.sent, r)
	return nil
}

// search asks for an answer, and joins its messages.
func searchAll(ctx context.Context, s *serve.Service, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	out := &stream{ctx: ctx}
	if err := s.StreamSearch(&searchv1.StreamSearchRequest{Search: req}, out); err != nil {
		return nil, err
	}
	last := out.sent[len(out.sent)-1]
	whole := &searchv1.SearchResponse{Statistics: last.Statistics, Coverage: last.Coverage}
	for _, m := range out.sent {
		whole.Files = append(whole.Files, m.Files...)
	}
	return whole, nil
}

type listStream struct {
	grpc.ServerStream
	ctx  context.Context
	sent []*searchv1.StreamListResponse
}

func (s *listStream) Context() context.Context { return s.ctx }
func (s *listStream) Send(r *searchv1.StreamListResponse) error {
	s.sent = append(s.sent, r)
	return nil
}

// list asks for a list, and joins its messages.
func list(ctx context.Context, s *serve.Service, req *searchv1.ListRequest) (*searchv1.ListResponse, error) {
	out := &listStream{ctx: ctx}
	if err := s.StreamList(&searchv1.StreamListRequest{List: req}, out); err != nil {
		return nil, err
	}
	whole := &searchv1.ListResponse{Coverage: out.sent[len(out.sent)-1].Coverage}
	for _, m := range out.sent {
		whole.Repos = append(whole.Repos, m.Repos...)
	}
	return whole, nil
}

func TestStreamSearch(t *testing.T) {
	s := start(t, "good", "damaged", "fine")
	out := &stream{ctx: t.Context()}
	req := &searchv1.SearchRequest{Query: "q", Plan: planOf("r", "good", "damaged", "fine")}
	if err := s.StreamSearch(&searchv1.StreamSearchRequest{Search: req}, out); err != nil {
		t.Fatal(err)
	}
	last := out.sent[len(out.sent)-1]
	if len(out.sent) != 1 || last.Coverage.Searched != 2 || last.Coverage.Failed != 1 || last.Statistics.FilesMatched != 2 {
		t.Errorf("sent %v", out.sent)
	}
	if len(last.Files) != 2 || string(last.Files[0].Path) != "fine" || last.Cut != 0 {
		t.Errorf("files %v, cut %v", last.Files, last.Cut)
	}
}
