package search_test

import (
	"context"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	indexsearch "github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/server"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// searcher is a searcher of a test, over real gRPC: it finds every file of the shards it holds,
// whatever the query, unless a field says otherwise.
type searcher struct {
	searchv1.UnimplementedSearchServiceServer
	id   string
	addr string

	mu    sync.Mutex
	files map[searchapi.Digest][]*searchv1.FileMatch
	repos map[searchapi.Digest][]*searchv1.RepoEntry
	// names are the repos of shards that several searchers hold different parts of.
	names map[searchapi.Digest][]string
	lacks map[searchapi.Digest]searchv1.UncoveredReason
	// matches, unless it is nil, says of a query and a file whether the file is found.
	matches func(query string, f *searchv1.FileMatch) bool
	fails   error
	hangs   bool
	// began and gone, unless they are nil, receive something for each hanging call: began at its start, and gone the
	// time that it was given, once its context has ended.
	began chan struct{}
	gone  chan time.Duration
	// dies names the query at which the searcher's process ends.
	dies string
	end  func()
	// breaks says, after each piece of an answer, whether the process ends there.
	breaks func() bool
	// describes replaces repos in lists, unless it is nil.
	describes func(req *searchv1.ListRequest, shard searchapi.Digest, repo string) *searchv1.RepoEntry
	listed    []*searchv1.ListRequest
	asked     []*searchv1.SearchRequest
	gets      int
}

func (s *searcher) trouble(ctx context.Context) error {
	s.mu.Lock()
	fails, hangs := s.fails, s.hangs
	s.mu.Unlock()
	if hangs {
		began := time.Now()
		if s.began != nil {
			s.began <- struct{}{}
		}
		<-ctx.Done()
		if s.gone != nil {
			deadline, _ := ctx.Deadline()
			s.gone <- deadline.Sub(began)
		}
		return status.FromContextError(ctx.Err()).Err()
	}
	return fails
}

// each calls do for every planned shard that is held, or searched in part until
// the time is over, and accounts for all.
func (s *searcher) each(p *searchv1.Plan, do func(searchapi.Digest, []string)) *searchv1.Coverage {
	var shards []searchapi.Shard
	for _, planned := range p.Shards {
		shard, err := searchapi.ParsePlanned(planned)
		if err != nil {
			panic(err)
		}
		shards = append(shards, shard)
	}
	account := searchapi.NewAccount(shards)
	for _, planned := range shards {
		if reason := s.lacks[planned.Digest]; reason != 0 {
			account.Uncovered(planned.Digest, reason, "lacks it")
			if reason != reasonDeadline {
				continue
			}
		} else {
			account.Searched(planned.Digest)
		}
		var repos []string
		for i, name := range s.held(planned.Digest) {
			if planned.Repos.Has(i) {
				repos = append(repos, name)
			}
		}
		do(planned.Digest, repos)
	}
	return account.Coverage()
}

// held are the repos in a shard, in its order.
func (s *searcher) held(d searchapi.Digest) (names []string) {
	if names, known := s.names[d]; known {
		return names
	}
	for _, f := range s.files[d] {
		names = append(names, f.Repo)
	}
	for _, e := range s.repos[d] {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *searcher) StreamSearch(streamed *searchv1.StreamSearchRequest, stream grpc.ServerStreamingServer[searchv1.StreamSearchResponse]) error {
	ctx, req := stream.Context(), streamed.Search
	if err := s.trouble(ctx); err != nil {
		return err
	}
	if req.Query != "" && req.Query == s.dies {
		s.end()
		<-ctx.Done()
		return ctx.Err()
	}
	last := s.answer(req)
	for piece := range searchapi.Pieces(slices.Values(last.Files)) {
		if err := stream.Send(&searchv1.StreamSearchResponse{Files: piece}); err != nil {
			return err
		}
		if s.breaks != nil && s.breaks() {
			s.end()
			<-ctx.Done()
			return ctx.Err()
		}
	}
	last.Files = nil
	return stream.Send(last)
}

func (s *searcher) answer(req *searchv1.SearchRequest) *searchv1.StreamSearchResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, req)
	resp := &searchv1.StreamSearchResponse{Statistics: &searchv1.Statistics{CountsExact: true}}
	if req.Options.Explain {
		resp.Explanation = &searchv1.Explanation{Nodes: []*searchv1.ExplainedNode{{Query: req.Query, Checked: 1}}}
	}
	resp.Coverage = s.each(req.Plan, func(d searchapi.Digest, repos []string) {
		if resp.Explanation != nil {
			resp.Explanation.Shards++
		}
		for _, f := range s.files[d] {
			if slices.Contains(repos, f.Repo) && (s.matches == nil || s.matches(req.Query, f)) {
				resp.Statistics.FilesMatched++
				if after := searchapi.KeyFromProto(req.Plan.After); after == nil || indexsearch.Compare(searchapi.Key(f), *after) > 0 {
					resp.Files = append(resp.Files, f)
				}
			}
		}
	})
	slices.SortFunc(resp.Files, inOrder)
	resp.Files = resp.Files[:min(len(resp.Files), int(req.Options.MaxFiles))]
	if n := max(searchapi.Fitting(resp.Files, int(req.Options.MaxBytes)), 1); n < len(resp.Files) {
		resp.Files, resp.Cut = resp.Files[:n], searchv1.CutReason_CUT_REASON_MAX_BYTES
	}
	return resp
}

func (s *searcher) StreamList(streamed *searchv1.StreamListRequest, stream grpc.ServerStreamingServer[searchv1.StreamListResponse]) error {
	if err := s.trouble(stream.Context()); err != nil {
		return err
	}
	req := streamed.List
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = append(s.listed, req)
	var entries []*searchv1.RepoEntry
	expression, byName := strings.CutPrefix(req.Query, "repo:")
	coverage := s.each(req.Plan, func(d searchapi.Digest, repos []string) {
		for _, name := range repos {
			if s.describes != nil && searchapi.Within(req.Plan.Span, name) {
				if e := s.describes(req, d, name); e != nil {
					entries = append(entries, e)
				}
			}
		}
		for _, e := range s.repos[d] {
			if byName && !regexp.MustCompile(expression).MatchString(e.Name) {
				continue
			}
			// Entries with a URL match the empty query only.
			if slices.Contains(repos, e.Name) && searchapi.Within(req.Plan.Span, e.Name) && (e.Url == "" || req.Query == "") {
				entries = append(entries, &searchv1.RepoEntry{
					Name: e.Name, Documents: e.Documents, Languages: e.Languages, Shards: 1,
					SkippedFiles: e.SkippedFiles[:min(len(e.SkippedFiles), int(req.MaxSkippedFiles))],
				})
			}
		}
	})
	for piece := range searchapi.EntryPieces(slices.Values(entries)) {
		if err := stream.Send(&searchv1.StreamListResponse{Repos: piece}); err != nil {
			return err
		}
	}
	return stream.Send(&searchv1.StreamListResponse{Coverage: coverage})
}

func (s *searcher) GetFile(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	if err := s.trouble(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	var found *searchv1.GetFileResponse
	c := s.each(req.Plan, func(d searchapi.Digest, repos []string) {
		for _, f := range s.files[d] {
			onBranch := req.Branch == "" || slices.Contains(f.Branches, req.Branch)
			if f.Repo == req.Repo && string(f.Path) == string(req.Path) && onBranch && slices.Contains(repos, f.Repo) {
				content := []byte("content of " + string(f.Path))
				for _, c := range f.Chunks {
					content = append(content, c.Content...)
				}
				found = &searchv1.GetFileResponse{SizeBytes: uint64(len(content)), Branches: f.Branches}
				content = content[min(req.Offset, uint64(len(content))):]
				found.Content = content[:min(req.MaxBytes, uint64(len(content)))]
			}
		}
	})
	switch {
	case found != nil:
		return found, nil
	case !c.Complete:
		return nil, status.Error(codes.Unavailable, "not all shards could be read")
	}
	return nil, status.Error(codes.NotFound, "no such file")
}

// ListTree lists the files of its shards on any branch.
func (s *searcher) ListTree(ctx context.Context, req *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error) {
	if err := s.trouble(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	listing := searchapi.Listing{MaxEntries: int(req.MaxEntries), MaxBytes: int(req.MaxBytes)}
	resp := &searchv1.ListTreeResponse{Coverage: s.each(req.Plan, func(d searchapi.Digest, _ []string) {
		var entries []*searchv1.TreeEntry
		for _, f := range s.files[d] {
			below, inside := strings.CutPrefix(string(f.Path), string(req.Path))
			if !inside || f.Repo != req.Repo {
				continue
			}
			e := &searchv1.TreeEntry{Path: f.Path, Kind: searchv1.TreeEntry_KIND_FILE}
			if parts := strings.SplitAfter(below, "/"); len(parts) > int(req.Depth) {
				e.Path, e.Kind, e.Files = []byte(string(req.Path)+strings.Join(parts[:req.Depth], "")), searchv1.TreeEntry_KIND_FOLDER, 1
			}
			if string(e.Path) > string(req.Plan.After.Path) {
				entries = append(entries, e)
			}
		}
		listing.Add(entries, false)
	})}
	resp.Entries, resp.More = listing.Entries, listing.More
	return resp, nil
}

func inOrder(a, b *searchv1.FileMatch) int {
	return indexsearch.Compare(searchapi.Key(a), searchapi.Key(b))
}

// cluster is a router's service over searchers of a test.
type cluster struct {
	connecting func() // called before a searcher is asked; may be nil
	shares     fanout.Shares
	*search.Service
	searchers []*searcher
	conns     *fanout.Conns
	layout    *search.Layout
	// places says which searchers hold a shard, best first; nil: all of them, in order.
	places map[searchapi.Digest][]int
	// directory replaces places, unless it is nil.
	directory *fanout.Directory
	cfg       search.Config
}

func (*cluster) Reach(context.Context, *searchv1.Consistency, int64) error { return nil }

func (c *cluster) At(context.Context, *searchv1.Consistency, int64) (*search.Layout, error) {
	return c.layout, nil
}

func (c *cluster) Candidates(d searchapi.Digest) (targets []fanout.Target) {
	if c.directory != nil {
		return c.directory.Candidates(d)
	}
	places, ok := c.places[d]
	if !ok {
		for i := range c.searchers {
			places = append(places, i)
		}
	}
	for _, i := range places {
		targets = append(targets, fanout.Target{ID: c.searchers[i].id, Address: c.searchers[i].addr})
	}
	return targets
}

func (c *cluster) Client(address string) (searchv1.SearchServiceClient, error) {
	if c.connecting != nil {
		c.connecting()
	}
	return c.conns.Client(address)
}

// owner is a test, or a round of one, that a cluster ends with.
type owner interface {
	Helper()
	Cleanup(end func())
	Fatal(args ...any)
}

// start serves n searchers and makes a service that asks them.
func start(tb owner, n int, change func(*cluster)) *cluster {
	tb.Helper()
	c := &cluster{shares: fanout.Shares{Hedges: 0.1, Retries: 0.2}, cfg: search.Config{
		// The race detector takes over ten seconds for answers of many megabytes.
		Budget: search.Budget{Default: time.Minute, Most: time.Minute},
		Limits: search.Limits{MaxFiles: 1000, MaxBytes: 1 << 20}, MaxQueries: 1000,
	}}
	c.conns = fanout.NewConns(func(addr string) (server.Conn, error) {
		return grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	})
	tb.Cleanup(func() { c.conns.Close() })
	for i := range n {
		s := &searcher{
			id: string(rune('a' + i)), files: make(map[searchapi.Digest][]*searchv1.FileMatch),
			repos: make(map[searchapi.Digest][]*searchv1.RepoEntry), lacks: make(map[searchapi.Digest]searchv1.UncoveredReason),
		}
		s.serve(tb)
		c.searchers = append(c.searchers, s)
	}
	if change != nil {
		change(c)
	}
	if c.layout == nil {
		c.layoutOf(tb)
	}
	reached := fanout.NewMetrics(prometheus.NewRegistry())
	c.cfg.Peers = fanout.NewPeers(c.shares, c.conns.Ping, reached, slog.New(slog.DiscardHandler))
	metrics := search.NewMetrics(prometheus.NewRegistry())
	c.Service = search.New(c.cfg, c, c, noop.NewTracerProvider().Tracer(""), metrics, slog.New(slog.DiscardHandler))
	return c
}

func (s *searcher) serve(tb owner) {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	srv := grpc.NewServer(grpc.WaitForHandlers(true), grpc.MaxRecvMsgSize(16<<20)) // as searchers do
	searchv1.RegisterSearchServiceServer(srv, s)
	var serving sync.WaitGroup
	serving.Go(func() { srv.Serve(ln) })
	var ending sync.WaitGroup
	s.end = func() { ending.Go(srv.Stop) }
	tb.Cleanup(func() { srv.Stop(); serving.Wait(); ending.Wait() })
	s.addr = ln.Addr().String()
}

// layoutOf makes roots of what the searchers hold.
func (c *cluster) layoutOf(tb owner) {
	tb.Helper()
	roots := make(map[string]*catalogv1.Root)
	seen := make(map[string]bool)
	note := func(repo string, d searchapi.Digest) {
		if roots[repo] == nil {
			roots[repo] = &catalogv1.Root{Repo: repo, Generation: 3, Branches: []*catalogv1.Branch{{Name: "main", Commit: "c0"}}}
		}
		if key := repo + "\x00" + d.String(); !seen[key] {
			seen[key] = true
			roots[repo].Shards = append(roots[repo].Shards, &catalogv1.ShardRef{Digest: d[:], SizeBytes: 10})
		}
	}
	held := make(map[searchapi.Digest][]string)
	for _, s := range c.searchers {
		for d := range s.files {
			held[d] = append(held[d], s.held(d)...)
		}
		for d := range s.repos {
			held[d] = append(held[d], s.held(d)...)
		}
	}
	for d, names := range held {
		slices.Sort(names)
		held[d] = slices.Compact(names)
	}
	for _, s := range c.searchers {
		s.names = held
		for d, files := range s.files {
			for _, f := range files {
				note(f.Repo, d)
			}
		}
		for d, entries := range s.repos {
			for _, e := range entries {
				note(e.Name, d)
			}
		}
	}
	var list []*catalogv1.Root
	for _, r := range roots {
		list = append(list, r)
	}
	for _, root := range list {
		for _, ref := range root.Shards {
			number, _ := slices.BinarySearch(held[searchapi.Digest(ref.Digest)], root.Repo)
			ref.RepoNumber = uint32(number)
		}
	}
	slices.SortFunc(list, func(a, b *catalogv1.Root) int { return strings.Compare(a.Repo, b.Repo) })
	var err error
	if c.layout, err = search.NewLayout(42, list); err != nil {
		tb.Fatal(err)
	}
}
