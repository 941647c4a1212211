package search

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// List implements searchv1.SearchServiceServer.
func (s *Service) List(ctx context.Context, req *searchv1.ListRequest) (resp *searchv1.ListResponse, err error) {
	asked := askedFor(req)
	mark := pageQuestion{Query: asked.key(), SyntaxVersion: asked.version}
	from, err := listedUpTo(mark, req.PageToken)
	if err != nil {
		return nil, err
	}
	resp = &searchv1.ListResponse{}
	more := false
	l, err := s.listing(ctx, "list", req, from, interactive, func(entries []*searchv1.RepoEntry, follow bool) (bool, error) {
		resp.Repos, more = entries, follow
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	maxBytes := s.cfg.Limits.bytes(req.MaxBytes)
	repos := resp.Repos
	resp.Repos, resp.RevisionToken = nil, l.layout.token()
	resp.Coverage = searchapi.TrimCoverage(l.coverage, maxBytes/2)
	room := maxBytes - proto.Size(resp) - tokenRoom
	fit := searchapi.Fitting(repos, room)
	if fit == 0 && len(repos) > 0 {
		searchapi.CutEntry(repos[0], room) // an empty page could have no next page
		fit = 1
	}
	resp.Repos = repos[:fit]
	if fit > 0 && (more || fit < len(repos)) {
		cursor := pageCursor{Revision: l.layout.Revision}
		cursor.After.Repo = repos[fit-1].Name
		resp.NextPageToken = encodePageToken(mark, cursor)
	}
	return resp, nil
}

// StreamList implements searchv1.SearchServiceServer.
func (s *Service) StreamList(req *searchv1.StreamListRequest, stream grpc.ServerStreamingServer[searchv1.StreamListResponse]) error {
	l, err := s.listing(stream.Context(), "stream_list", req.List, pageCursor{}, batch, func(entries []*searchv1.RepoEntry, _ bool) (bool, error) {
		for piece := range searchapi.EntryPieces(slices.Values(entries)) {
			if err := stream.Send(&searchv1.StreamListResponse{Repos: piece}); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return stream.Send(&searchv1.StreamListResponse{
		Coverage: searchapi.TrimCoverage(l.coverage, lastPiece), RevisionToken: l.layout.token(),
	})
}

// EachRepo passes the repos that a List finds to do, in ascending order and in
// batches, so that it never holds all of them. It stops at the first error of do.
func (s *Service) EachRepo(ctx context.Context, req *searchv1.ListRequest, do func([]*searchv1.RepoEntry) error) (*searchv1.Coverage, error) {
	l, err := s.listing(ctx, "list", req, pageCursor{}, interactive, func(entries []*searchv1.RepoEntry, _ bool) (bool, error) {
		return true, do(entries)
	})
	return l.coverage, err
}

// askedFor is the question of a list.
func askedFor(req *searchv1.ListRequest) *question {
	return &question{text: req.Query, tree: req.Tree, version: max(req.SyntaxVersion, 1)}
}

// listedUpTo is the place where the page before the token ended.
func listedUpTo(q pageQuestion, token []byte) (pageCursor, error) {
	if len(token) == 0 {
		return pageCursor{}, nil
	}
	from, err := decodePageToken(q, token)
	if errors.Is(err, errOtherPage) || errors.Is(err, errPageToken) {
		err = searchapi.FieldError(codes.InvalidArgument, "page_token", err.Error())
	}
	return from, err
}

// listed is the state at the end of a list.
type listed struct {
	layout   *Layout
	coverage *searchv1.Coverage
}

// listing passes the repos after the cursor to do in batches that fit the memory of a
// query, until do returns again false. Follow is true if more repos come after the batch.
func (s *Service) listing(ctx context.Context, method string, req *searchv1.ListRequest, from pageCursor, class queryClass,
	do func(entries []*searchv1.RepoEntry, follow bool) (again bool, err error),
) (l listed, err error) {
	start := s.metrics.begin()
	defer func() { s.metrics.observe(method, start, l.coverage, given(ctx, err)) }()
	if err := refusePlan(req.Plan); err != nil {
		return l, err
	}
	asking, ticket, end, err := s.letIn(ctx, method, start, class, req.Consistency, from.Revision)
	if err != nil {
		return l, err
	}
	defer end()
	e, err := s.plan(asking, ticket, askedFor(req), req.Consistency, from.Revision)
	if err != nil {
		return l, err
	}
	l.layout = e.layout
	windows, err := e.windows(from.After.Repo)
	if err != nil {
		return l, err
	}
	defer windows.memory.Close()
	for again := true; again; {
		entries, follow := e.repos(asking, windows, req.MaxSkippedFiles)
		if again, err = do(entries, follow); err != nil {
			return l, err
		}
		again = again && follow
	}
	windows.end()
	l.coverage, err = e.account(false)
	return l, err
}

// repos returns the next batch of repos. Follow is true if more repos may come after it.
func (e *execution) repos(ctx context.Context, w *windows, maxSkipped uint32) (repos []*searchv1.RepoEntry, follow bool) {
	size := e.service.firstWindow
	for len(repos) < size {
		shards, span := w.next(ctx)
		e.coverage.Want(shards)
		entries, cut := e.list(ctx, "fan out", e.asked, shards, span, maxSkipped)
		entries, again := e.complete(ctx, entries, maxSkipped)
		entries = searchapi.MergeEntries(int(maxSkipped), entries)
		last := span.GetLast()
		if cut || again {
			switch {
			case len(entries) > 0:
				last = entries[len(entries)-1].Name
			case len(repos) > 0:
				return repos, true
			case maxSkipped > 0:
				maxSkipped = 0 // the skipped files of a single repo exceed the memory
				continue
			default:
				w.leave(ctx, searchv1.UncoveredReason_UNCOVERED_REASON_ERROR, "the description of a repo takes more memory than a query may use")
				return nil, false
			}
		}
		for _, entry := range entries {
			e.describe(entry)
		}
		repos = append(repos, entries...)
		if last == "" {
			return repos, false
		}
		if w.after = last; ctx.Err() != nil {
			w.leave(ctx, searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE, searchapi.NoTurn)
			return repos, false
		}
		if cut || again {
			w.size = max(len(entries), 1) // there is memory for as many, and the next window may find all that it has
			break
		}
		wanted := size - len(repos)
		if wanted <= 0 {
			wanted = size // for the next batch
		}
		w.resize(len(entries), wanted)
	}
	return repos, true
}

// firstWindow is how many repos are in the first window of a list, and about how many are in a batch.
const firstWindow = 2000

// windows are the repos that a list asks for, one part after the other, so that a page takes as long as its repos do, not as all
// repos.
type windows struct {
	execution *execution
	// evaluate rules out repos, in the memory. Only if byRepo is true, it rules out single ones.
	evaluate evaluator
	memory   *regex.Memory
	// byRepo is also true if the caller does not see all repos: which of them share a chunk depends on the others, and a window
	// that ends with a chunk would reveal those.
	byRepo bool
	// asked has the places of the shards that a window had.
	asked map[uint32]bool
	// after is the last repo before the next window, and size about how many it has.
	after string
	size  int
}

// windows begins after a repo. The caller closes its memory.
func (e *execution) windows(after string) (*windows, error) {
	w := &windows{execution: e, byRepo: looksAtRepos(e.tree) || e.layout.restricted, asked: make(map[uint32]bool), after: after, size: e.service.firstWindow}
	var err error
	if w.memory, err = e.service.memoryFor(e.tree); err != nil {
		return nil, err
	}
	if w.evaluate, err = newExpressions(w.memory).compile(e.tree); err != nil {
		w.memory.Close()
		return nil, err
	}
	return w, nil
}

// next returns the wanted shards that have repos of the window, and its bounds, which have no last repo if no other window follows, and are
// nil if it is the only one: older searchers answer that too. If ctx ends before they are known, it returns all wanted shards.
func (w *windows) next(ctx context.Context) (shards []searchapi.Shard, span *searchv1.RepoSpan) {
	span = &searchv1.RepoSpan{After: w.after}
	in, n, more := make(map[uint32]bool), 0, false
	err := w.each(ctx, func(held []uint32, repos int, last string) bool {
		if more = n >= w.size; more {
			return false
		}
		n, span.Last = n+repos, last
		for _, place := range held {
			in[place] = true
		}
		return true
	})
	if !more {
		span.Last = ""
	}
	if span.After == "" && span.Last == "" {
		span = nil
	}
	for _, s := range w.execution.wanted {
		if err != nil || in[s.Place] {
			shards, w.asked[s.Place] = append(shards, s), true
		}
	}
	return shards, span
}

// each passes the repos from the beginning of the window to do, until that returns false: the shards that hold them, their number, and
// the last of them. These are all repos of a chunk, or single ones if the query rules out others. The error is that of ctx.
func (w *windows) each(ctx context.Context, do func(held []uint32, repos int, last string) bool) error {
	l := w.execution.layout
	if w.byRepo {
		var held []catalog.Held
		var places []uint32
		return l.eachRepo(ctx, w.after, w.evaluate, func(c *chunk, r catalog.Record) bool {
			held, places = r.Shards(held[:0]), places[:0]
			for _, h := range held {
				places = append(places, c.shards[h.Shard])
			}
			return do(places, 1, r.Repo)
		})
	}
	for _, c := range l.chunksAfter(w.after) {
		if c.n > 0 && !do(c.shards, c.n, c.roots.Last()) {
			break
		}
	}
	return nil
}

// resize makes the next window twice as large as has the wanted number of repos, if as many are found in it as were in this one: a list
// that finds little among very many repos needs few windows. It grows 16 times at most, since the repos of one organisation may say little
// about those of the next.
func (w *windows) resize(found, wanted int) {
	w.size = min(max(2*w.size*wanted/(found+1), 1), 16*w.size, math.MaxInt32)
}

// leave accounts for the repos after the last window, which the list does not have: their shards are missing, even if other windows
// had them.
func (w *windows) leave(ctx context.Context, reason searchv1.UncoveredReason, message string) {
	w.size = math.MaxInt32
	shards, _ := w.next(ctx)
	for _, s := range shards {
		w.execution.coverage.Uncovered(s.Digest, reason, message)
	}
}

// end accounts for the shards that no window had: their repos are on other pages.
func (w *windows) end() {
	for _, s := range w.execution.wanted {
		if !w.asked[s.Place] {
			w.execution.coverage.Pruned(s.Digest)
		}
	}
}

// complete adds what the other shards hold of repos that match in some of their
// shards only: an entry describes the whole repo.
func (e *execution) complete(ctx context.Context, entries []*searchv1.RepoEntry, maxSkipped uint32) (completed []*searchv1.RepoEntry, cut bool) {
	matched := byName(entries)
	var elsewhere []string
	for name, parts := range matched {
		if shardsIn(parts) < len(e.layout.holdingsOf(name)) {
			elsewhere = append(elsewhere, name)
		}
	}
	others := e.layout.ShardsOf(elsewhere...)
	if len(others) == 0 {
		return entries, false
	}
	e.coverage.Want(others)
	again, cut := e.list(ctx, "describe repos", everything, others, nil, maxSkipped)
	if cut {
		// Entries after the cut are not known in full.
		last := ""
		if len(again) > 0 {
			last = again[len(again)-1].Name
		}
		maps.DeleteFunc(matched, func(name string, _ []*searchv1.RepoEntry) bool { return name > last })
	}
	maps.Copy(matched, byName(again))
	return slices.Concat(slices.Collect(maps.Values(matched))...), cut
}

// shardsIn is the number of shards that the parts of a repo cover.
func shardsIn(parts []*searchv1.RepoEntry) (n int) {
	for _, p := range parts {
		n += int(p.Shards)
	}
	return n
}

func byName(entries []*searchv1.RepoEntry) map[string][]*searchv1.RepoEntry {
	m := make(map[string][]*searchv1.RepoEntry)
	for _, e := range entries {
		m[e.Name] = append(m[e.Name], e)
	}
	return m
}

// describe adds what the root of the repo holds.
func (e *execution) describe(entry *searchv1.RepoEntry) {
	root, ok := e.layout.Root(entry.Name)
	if !ok {
		return
	}
	entry.Generation, entry.PublishedAt, entry.Url, entry.Id = root.Generation, root.PublishedAt, root.Url, root.Id
	entry.Shards, entry.IndexBytes = uint64(len(root.Shards)), e.layout.IndexBytes(entry.Name)
	entry.Branches = nil
	for _, b := range root.Branches {
		entry.Branches = append(entry.Branches, &searchv1.BranchEntry{Name: b.Name, Commit: b.Commit})
	}
}
