package search_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// listDoc is a document of a repo in a shard.
type listDoc struct {
	repo, text, language string
	branch               int
}

// listWorld is a plain model of what a list is asked about.
type listWorld struct {
	roots []*catalogv1.Root // in order
	docs  map[searchapi.Digest][]listDoc
	// skipped is the number of skipped files of each repo in each shard.
	skipped int
}

var listBranches = []string{"main", "dev"}

// matches reports whether a document matches a query without type:repo.
func (d *listDoc) matches(q query.Q) bool {
	switch q := q.(type) {
	case *query.And:
		return !slices.ContainsFunc(q.Children, func(c query.Q) bool { return !d.matches(c) })
	case *query.Or:
		return slices.ContainsFunc(q.Children, d.matches)
	case *query.Not:
		return !d.matches(q.Child)
	case *query.Const:
		return q.Value
	case *query.Repo:
		return regexp.MustCompile(q.Tree.String()).MatchString(d.repo)
	case *query.RepoSet:
		return q.Names[d.repo]
	case *query.Language:
		return d.language == q.Name
	case *query.Branch:
		return q.Matches(listBranches[d.branch], d.branch)
	case *query.Substring:
		return strings.Contains(d.text, q.Pattern) || !q.CaseSensitive && strings.Contains(strings.ToLower(d.text), q.Pattern)
	}
	panic(fmt.Sprintf("a query of %T", q))
}

// find returns the matching repos among those for which seen holds.
func (w *listWorld) find(q query.Q, seen func(string) bool) (names []string) {
	q, err := query.ResolveRepos(q, func(child query.Q) ([]string, error) { return w.find(child, seen), nil })
	if err != nil {
		panic(err) // it finds names
	}
	for _, root := range w.roots {
		has := func(ref *catalogv1.ShardRef) bool {
			return slices.ContainsFunc(w.docs[searchapi.Digest(ref.Digest)], func(d listDoc) bool { return d.repo == root.Repo && d.matches(q) })
		}
		if seen(root.Repo) && slices.ContainsFunc(root.Shards, has) {
			names = append(names, root.Repo)
		}
	}
	return names
}

// describe is the answer of a searcher.
func (w *listWorld) describe(req *searchv1.ListRequest, shard searchapi.Digest, repo string) *searchv1.RepoEntry {
	q, err := searchapi.ParseAny(req.Query, req.Tree, req.SyntaxVersion)
	if err != nil {
		panic(err) // the router has parsed it
	}
	q, next, err := searchapi.Resolve(q, req.Plan.Resolved)
	if err != nil {
		panic(err)
	}
	if next != nil {
		q = next
	}
	entry, matches := &searchv1.RepoEntry{Name: repo, Shards: 1}, false
	for _, d := range w.docs[shard] {
		if d.repo == repo {
			entry.Documents++
			matches = matches || d.matches(q)
		}
	}
	for i := range min(w.skipped, int(req.MaxSkippedFiles)) {
		entry.SkippedFiles = append(entry.SkippedFiles, &searchv1.SkippedFile{Path: fmt.Appendf(nil, "%s/%d", strings.Repeat("skipped", 20), i)})
	}
	if !matches {
		return nil
	}
	return entry
}

var (
	listNames  = rapid.StringMatching(`(a|A|ab|a/b|a-b|a!|é|日|~|b)(/a|-a|A| |.a|é)?[0-3]?`)
	listAtoms  = []string{"alpha", "beta", "Alpha", "lang:Go", "lang:C", "branch:dev", "branch:main", "repo:^a", "repo:b", "repo:(?i)A", "repo:é", "repo:[0-2]$"}
	listQuery  = rapid.Custom(func(t *rapid.T) string { return anyList(t, 3) })
	listDigest = func(i int) searchapi.Digest { return sha256.Sum256([]byte{byte(i)}) }
)

// anyList draws a query.
func anyList(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	if depth == 0 || kind < 4 {
		return rapid.SampledFrom(listAtoms).Draw(t, "atom")
	}
	switch kind {
	case 4:
		return "(" + anyList(t, depth-1) + " or " + anyList(t, depth-1) + ")"
	case 5, 6:
		return "-" + anyList(t, 0)
	case 7:
		return "(type:repo " + anyList(t, depth-1) + ")"
	}
	return anyList(t, depth-1) + " " + anyList(t, depth-1)
}

// anyListWorld draws repos: several share a shard, and some are in several shards.
func anyListWorld(t *rapid.T) *listWorld {
	w := &listWorld{docs: make(map[searchapi.Digest][]listDoc), skipped: rapid.IntRange(0, 20).Draw(t, "skipped")}
	names := rapid.SliceOfNDistinct(listNames, 1, 40, rapid.ID[string]).Draw(t, "names")
	slices.Sort(names)
	shards, most := rapid.IntRange(1, 6).Draw(t, "shards"), rapid.IntRange(1, 3).Draw(t, "most")
	numbers, refs := make(map[searchapi.Digest]uint32), []*catalogv1.ShardRef(nil)
	for _, name := range names {
		root := &catalogv1.Root{Repo: name, Generation: 3}
		commit := "c0"
		if rapid.IntRange(0, 2).Draw(t, "large") == 0 {
			commit = strings.Repeat(commit, 5000) // so that a chunk has few of them
		}
		for _, b := range listBranches {
			root.Branches = append(root.Branches, &catalogv1.Branch{Name: b, Commit: commit})
		}
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, shards-1), 0, min(most, shards), rapid.ID[int]).Draw(t, "in") {
			d := listDigest(i)
			ref := &catalogv1.ShardRef{Digest: d[:], SizeBytes: 10, RepoNumber: numbers[d]}
			numbers[d]++
			for range rapid.IntRange(1, 2).Draw(t, "docs") {
				doc := listDoc{
					repo: name, text: rapid.SampledFrom([]string{"", "alpha", "beta", "Alpha beta"}).Draw(t, "text"),
					language: rapid.SampledFrom([]string{"Go", "C"}).Draw(t, "language"), branch: rapid.IntRange(0, 1).Draw(t, "branch"),
				}
				w.docs[d], ref.Languages = append(w.docs[d], doc), append(ref.Languages, doc.language)
			}
			slices.Sort(ref.Languages)
			ref.Languages = slices.Compact(ref.Languages)
			root.Shards, refs = append(root.Shards, ref), append(refs, ref)
		}
		w.roots = append(w.roots, root)
	}
	for _, ref := range refs {
		ref.Repos = numbers[searchapi.Digest(ref.Digest)]
	}
	return w
}

// held are the repos of each shard by their numbers.
func (w *listWorld) held() map[searchapi.Digest][]string {
	held := make(map[searchapi.Digest][]string)
	for _, root := range w.roots {
		for _, ref := range root.Shards {
			held[searchapi.Digest(ref.Digest)] = append(held[searchapi.Digest(ref.Digest)], root.Repo)
		}
	}
	return held
}

// endingTracer ends the time of a query after a number of rounds.
type endingTracer struct {
	noop.Tracer
	left int
	time *endingTime
}

type endingSpan struct {
	noop.Span
	ctx context.Context //nolint:containedctx // End waits for its end
	of  *endingTracer
}

func (t *endingTracer) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t.time == nil || name == "plan" {
		return ctx, noop.Span{}
	}
	return ctx, endingSpan{ctx: ctx, of: t}
}

func (s endingSpan) End(...trace.SpanEndOption) {
	if s.of.left--; s.of.left == 0 {
		close(s.of.time.done)
		<-s.ctx.Done()
	}
}

// endingTime is a context whose deadline passes when done is closed.
type endingTime struct {
	context.Context //nolint:containedctx // it is a context
	done            chan struct{}
}

func (e *endingTime) Done() <-chan struct{} { return e.done }

func (e *endingTime) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// listRun is one list of a world.
type listRun struct {
	*cluster
	world *listWorld
	ctx   context.Context //nolint:containedctx // that of the list
	// next is called before each page but the first.
	next func()
}

// over makes a service over the searchers of a cluster.
func (c *cluster) over(w *listWorld, limits search.Limits, window int, tracer trace.Tracer) *listRun {
	held := w.held()
	for _, s := range c.searchers {
		s.mu.Lock()
		s.names, s.describes, s.fails = held, w.describe, nil
		s.lacks = make(map[searchapi.Digest]searchv1.UncoveredReason)
		s.mu.Unlock()
	}
	c.cfg.Limits = limits
	c.cfg.Peers = fanout.NewPeers(c.shares, c.conns.Ping, fanout.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	c.Service = search.New(c.cfg, c, c, tracer, search.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	c.ListInWindows(window)
	return &listRun{cluster: c, world: w, ctx: context.Background(), next: func() {}}
}

// listedPages is what all pages of a list say.
type listedPages struct {
	names    []string
	pages    []string
	complete bool
}

// check accounts for a part of a list.
func (p *listedPages) check(t *rapid.T, w *listWorld, entries []*searchv1.RepoEntry, c *searchv1.Coverage) {
	for _, e := range entries {
		if n := len(p.names); n > 0 && p.names[n-1] >= e.Name {
			t.Fatalf("%q follows %q", e.Name, p.names[n-1])
		}
		p.names = append(p.names, e.Name)
		docs := uint64(0)
		for _, in := range w.docs {
			for _, d := range in {
				if d.repo == e.Name {
					docs++
				}
			}
		}
		if e.Documents > docs || c.Complete && e.Documents < docs {
			t.Fatalf("%q has %d documents, want %d: %v", e.Name, e.Documents, docs, c)
		}
	}
	if c.Searched+c.Pruned+c.Failed+c.NotReached != c.Requested || c.Complete != (c.Failed+c.NotReached == 0) {
		t.Fatalf("coverage %v", c)
	}
	p.complete = p.complete && c.Complete
	p.pages = append(p.pages, fmt.Sprintf("%d repos, %d of %d shards", len(entries), c.Searched, c.Requested))
}

// all reads all pages.
func (r *listRun) all(t *rapid.T, req *searchv1.ListRequest) *listedPages {
	p := &listedPages{complete: true}
	for req.PageToken = nil; len(p.pages) < 100; r.next() {
		resp, err := r.List(r.ctx, req)
		if err != nil {
			if r.ctx.Err() == nil {
				t.Fatal(err)
			}
			p.complete = false
			return p
		}
		if p.check(t, r.world, resp.Repos, resp.Coverage); len(resp.NextPageToken) == 0 {
			return p
		}
		req.PageToken = resp.NextPageToken
	}
	t.Fatal("the pages do not end")
	return nil
}

// stream reads a list without pages.
func (r *listRun) stream(t *rapid.T, req *searchv1.ListRequest) *listedPages {
	p, all := &listedPages{complete: true}, []*searchv1.RepoEntry(nil)
	req.PageToken = nil
	c, err := r.EachRepo(r.ctx, req, func(entries []*searchv1.RepoEntry) error {
		all = append(all, entries...)
		return nil
	})
	if err != nil {
		if r.ctx.Err() == nil {
			t.Fatal(err)
		}
		return &listedPages{}
	}
	p.check(t, r.world, all, c)
	return p
}

func anyListRequest(t *rapid.T, w *listWorld) (*searchv1.ListRequest, query.Q) {
	req := &searchv1.ListRequest{MaxSkippedFiles: uint32(rapid.IntRange(0, 20).Draw(t, "max skipped")), SyntaxVersion: 1}
	switch rapid.IntRange(0, 5).Draw(t, "question") {
	case 0:
	case 1:
		set := &searchv1.RepoNames{Names: []string{"nowhere"}}
		for _, root := range w.roots {
			if rapid.Bool().Draw(t, "in the set") {
				set.Names = append(set.Names, root.Repo)
			}
		}
		req.Tree = &searchv1.Query{Node: &searchv1.Query_Repos{Repos: set}}
	default:
		req.Query = listQuery.Draw(t, "query")
	}
	q, err := searchapi.ParseAny(req.Query, req.Tree, 1)
	if err != nil {
		t.Fatal(err)
	}
	return req, q
}

func newListLayout(t *rapid.T, revision int64, roots []*catalogv1.Root) *search.Layout {
	l, err := search.NewLayout(revision, roots)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var (
	listWindows = rapid.IntRange(1, 12)
	noListLimit = search.Limits{MaxBytes: 1 << 20}
)

// without are the roots of the repos for which gone is false.
func (w *listWorld) without(gone func(string) bool) []*catalogv1.Root {
	return slices.DeleteFunc(slices.Clone(w.roots), func(r *catalogv1.Root) bool { return gone(r.Repo) })
}

func anySet(t *rapid.T, w *listWorld, of string) func(string) bool {
	set := make(map[string]bool)
	for _, root := range w.roots {
		set[root.Repo] = rapid.Bool().Draw(t, of)
	}
	return func(name string) bool { return set[name] }
}

// TestListIsThatOfAModel: all pages of a list together, and a list without pages, have each repo that matches once, in order. A caller who does not
// see some repos has the same pages whatever these are.
func TestListIsThatOfAModel(t *testing.T) {
	c := start(t, 2, nil)
	rapid.Check(t, func(t *rapid.T) {
		w := anyListWorld(t)
		r := c.over(w, noListLimit, listWindows.Draw(t, "window"), noop.NewTracerProvider().Tracer(""))
		req, q := anyListRequest(t, w)
		c.layout = newListLayout(t, 1, w.roots)
		everyone := func(string) bool { return true }
		want := w.find(q, everyone)
		req.MaxBytes = uint64(rapid.SampledFrom([]int{0, 1, 300, 1000}).Draw(t, "max bytes"))
		for _, got := range []*listedPages{r.all(t, req), r.stream(t, req)} {
			if !got.complete || !slices.Equal(got.names, want) {
				t.Fatalf("%q: %q, want %q; complete: %v", req.Query, got.names, want, got.complete)
			}
		}
		seen, hidden := anySet(t, w, "seen"), anySet(t, w, "hidden")
		want = w.find(q, seen)
		var before []string
		for _, gone := range []func(string) bool{
			func(string) bool { return false }, func(name string) bool { return !seen(name) }, func(name string) bool { return !seen(name) && hidden(name) },
		} {
			c.layout = newListLayout(t, 1, w.without(gone)).Only(seen)
			got := r.all(t, req)
			if !got.complete || !slices.Equal(got.names, want) {
				t.Fatalf("%q: %q, want %q; complete: %v", req.Query, got.names, want, got.complete)
			}
			if before != nil && !slices.Equal(got.pages, before) {
				t.Fatalf("%q: with other hidden repos the pages have %q, before %q", req.Query, got.pages, before)
			}
			before = got.pages
		}
	})
}

// TestListSaysWhatIsMissing: a list that misses repos, as searchers fail, as repos do not fit into the memory of a query, or as its time is over, is
// not complete.
func TestListSaysWhatIsMissing(t *testing.T) {
	c := start(t, 2, nil)
	rapid.Check(t, func(t *rapid.T) {
		w, tracer := anyListWorld(t), &endingTracer{}
		limits := noListLimit
		limits.QueryBytes = int64(rapid.SampledFrom([]int{0, 1, 500, 1000, 5000}).Draw(t, "memory"))
		r := c.over(w, limits, listWindows.Draw(t, "window"), tracer)
		req, q := anyListRequest(t, w)
		c.layout = newListLayout(t, 1, w.roots)
		reasons := []searchv1.UncoveredReason{0, reasonCorrupt, reasonDeadline}
		for i, s := range c.searchers {
			if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
				s.fails = fmt.Errorf("searcher %d fails", i)
			}
			for shard := range 6 {
				if reason := rapid.SampledFrom(reasons).Draw(t, "reason"); reason != 0 && rapid.IntRange(0, 3).Draw(t, "lacks") == 0 {
					s.lacks[listDigest(shard)] = reason
				}
			}
		}
		rounds := rapid.IntRange(0, 6).Draw(t, "rounds")
		want := w.find(q, func(string) bool { return true })
		for _, list := range []func(*rapid.T, *searchv1.ListRequest) *listedPages{r.all, r.stream} {
			if tracer.left = rounds; rounds > 0 {
				tracer.time = &endingTime{Context: context.Background(), done: make(chan struct{})}
				r.ctx = tracer.time //nolint:fatcontext // each list has its own
			}
			got := list(t, req)
			if got.complete && !slices.Equal(got.names, want) {
				t.Fatalf("%q: a complete list has %q, want %q", req.Query, got.names, want)
			}
			for _, name := range got.names { // a type:repo that misses repos may be negated
				if !strings.Contains(req.Query, "type:repo") && !slices.Contains(want, name) {
					t.Fatalf("%q: %q, want %q", req.Query, got.names, want)
				}
			}
		}
	})
}

// TestListOfChangingRepos: a list has all repos that match and are there throughout, whatever is published and deleted between its pages.
func TestListOfChangingRepos(t *testing.T) {
	c := start(t, 1, nil)
	rapid.Check(t, func(t *rapid.T) {
		w := anyListWorld(t)
		r := c.over(w, noListLimit, rapid.IntRange(1, 3).Draw(t, "window"), noop.NewTracerProvider().Tracer(""))
		req := &searchv1.ListRequest{Query: rapid.SampledFrom([]string{"", "alpha", "repo:a", "-repo:a", "(type:repo lang:Go)"}).Draw(t, "query"), SyntaxVersion: 1}
		q, err := searchapi.ParseAny(req.Query, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		revision, gone := int64(0), make(map[string]bool)
		r.next = func() {
			revision++
			now := anySet(t, w, "gone")
			for _, root := range w.roots {
				gone[root.Repo] = gone[root.Repo] || now(root.Repo)
			}
			c.layout = newListLayout(t, revision, w.without(now))
		}
		r.next()
		got := r.all(t, req)
		all := w.find(q, func(string) bool { return true })
		for _, name := range got.names {
			if !slices.Contains(all, name) {
				t.Fatalf("%q matches %q", name, req.Query)
			}
		}
		for _, name := range all {
			if !gone[name] && !slices.Contains(got.names, name) {
				t.Fatalf("%q: %q has no %q", req.Query, got.names, name)
			}
		}
	})
}
