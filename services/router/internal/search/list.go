package search

import (
	"context"
	"errors"
	"maps"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// List implements searchv1.SearchServiceServer.
func (s *Service) List(ctx context.Context, req *searchv1.ListRequest) (resp *searchv1.ListResponse, err error) {
	question := pageQuestion{Query: req.Query, SyntaxVersion: max(req.SyntaxVersion, 1)}
	from, err := listedUpTo(question, req.PageToken)
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
	resp.Repos, resp.RevisionToken = nil, catalog.EncodeToken(l.layout.Revision)
	resp.Coverage = searchapi.TrimCoverage(l.coverage, maxBytes/2)
	room := maxBytes - proto.Size(resp) - tokenRoom
	fit := searchapi.Fitting(repos, room)
	if fit == 0 && len(repos) > 0 {
		searchapi.CutEntry(repos[0], room) // or else there would be no next page either
		fit = 1
	}
	resp.Repos = repos[:fit]
	if fit > 0 && (more || fit < len(repos)) {
		cursor := pageCursor{Revision: l.layout.Revision}
		cursor.After.Repo = repos[fit-1].Name
		resp.NextPageToken = encodePageToken(question, cursor)
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
		Coverage: searchapi.TrimCoverage(l.coverage, lastPiece), RevisionToken: catalog.EncodeToken(l.layout.Revision),
	})
}

// EachRepo gives the repos that a List finds to do, in ascending order and some at a
// time, so that they are never all in memory. An error of do ends it.
func (s *Service) EachRepo(ctx context.Context, req *searchv1.ListRequest, do func([]*searchv1.RepoEntry) error) (*searchv1.Coverage, error) {
	l, err := s.listing(ctx, "list", req, pageCursor{}, interactive, func(entries []*searchv1.RepoEntry, _ bool) (bool, error) {
		return true, do(entries)
	})
	return l.coverage, err
}

// listedUpTo is where the page before a token ended.
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

// listed is how a list ended.
type listed struct {
	layout   *Layout
	coverage *searchv1.Coverage
}

// listing gives the repos after the cursor to do, as many at a time as the limit of
// memory allows, while it wants more. Follow says whether there are more.
func (s *Service) listing(ctx context.Context, method string, req *searchv1.ListRequest, from pageCursor, class queryClass,
	do func(entries []*searchv1.RepoEntry, follow bool) (again bool, err error),
) (l listed, err error) {
	start := s.metrics.begin()
	defer func() { s.metrics.observe(method, start, l.coverage, err) }()
	if err := refusePlan(req.Plan); err != nil {
		return l, err
	}
	whole, asking, cancel := s.cfg.Budget.split(ctx)
	defer cancel()
	turn, err := s.admit(whole, method, start, class)
	if err != nil {
		return l, err
	}
	defer turn.end()
	q, err := s.begin(asking, turn, req.Query, max(req.SyntaxVersion, 1), req.Consistency, from.Revision)
	if err != nil {
		return l, err
	}
	l.layout = q.layout
	for after, again := from.After.Repo, true; again; {
		entries, follow := q.repos(asking, after, req.MaxSkippedFiles)
		if again, err = do(entries, follow); err != nil {
			return l, err
		}
		if again = again && follow; again {
			after = entries[len(entries)-1].Name
		}
	}
	l.coverage, err = q.close(whole, false)
	return l, err
}

// repos are the next repos after a name, all of them or as many as the limit of memory
// allows; follow says whether there are more.
func (q *inquiry) repos(ctx context.Context, after string, maxSkipped uint32) (repos []*searchv1.RepoEntry, follow bool) {
	entries, follow := q.list(ctx, "fan out", q.text, q.wantedAfter(after), maxSkipped)
	entries, again := q.complete(ctx, entries, maxSkipped)
	if follow = follow || again; follow && len(entries) == 0 {
		if maxSkipped > 0 {
			return q.repos(ctx, after, 0) // one repo's skipped files are more than there is room for
		}
		return nil, false
	}
	repos = searchapi.MergeEntries(int(maxSkipped), entries)
	for _, e := range repos {
		q.describe(e)
	}
	return repos, follow
}

// wantedAfter begins the round for the repos after the name: the wanted shards with
// these. Those without any are pruned, if they were not searched for earlier names.
func (q *inquiry) wantedAfter(name string) []searchapi.Shard {
	if name == "" {
		return q.wanted
	}
	var shards []searchapi.Shard
	for _, s := range q.wanted {
		i, found := slices.BinarySearch(s.Repos, name)
		if found {
			i++
		}
		if i == len(s.Repos) {
			q.account.Pruned(s.Digest)
			continue
		}
		shards = append(shards, searchapi.Shard{Digest: s.Digest, Repos: s.Repos[i:], Overlays: s.Overlays})
	}
	q.account.Want(shards)
	return shards
}

// complete adds, for the repos that match in some of their shards only, what
// their other shards hold: an entry is about the whole repo.
func (q *inquiry) complete(ctx context.Context, entries []*searchv1.RepoEntry, maxSkipped uint32) (completed []*searchv1.RepoEntry, cut bool) {
	matched := byName(entries)
	var others []searchapi.Shard
	for name, parts := range matched {
		if shards := q.layout.ShardsOf(name); shardsIn(parts) < len(shards) {
			others = append(others, shards...)
		}
	}
	if len(others) == 0 {
		return entries, false
	}
	others = joined(others)
	q.account.Want(others)
	again, cut := q.list(ctx, "describe repos", everything, others, maxSkipped)
	if cut {
		// Only what comes before the place of the cut is known in full.
		last := ""
		if len(again) > 0 {
			last = again[len(again)-1].Name
		}
		maps.DeleteFunc(matched, func(name string, _ []*searchv1.RepoEntry) bool { return name > last })
	}
	maps.Copy(matched, byName(again))
	return slices.Concat(slices.Collect(maps.Values(matched))...), cut
}

// shardsIn is how many shards the parts of a repo are of; one may be in several parts.
func shardsIn(parts []*searchv1.RepoEntry) (n int) {
	for _, p := range parts {
		n += int(p.Shards)
	}
	return n
}

// everything is the query that matches every document.
const everything = ""

func byName(entries []*searchv1.RepoEntry) map[string][]*searchv1.RepoEntry {
	m := make(map[string][]*searchv1.RepoEntry)
	for _, e := range entries {
		m[e.Name] = append(m[e.Name], e)
	}
	return m
}

// joined names each shard once, with all the repos asked of it.
func joined(shards []searchapi.Shard) []searchapi.Shard {
	byDigest := make(map[searchapi.Digest]*searchapi.Shard)
	for _, s := range shards {
		j := byDigest[s.Digest]
		if j == nil {
			j = &searchapi.Shard{Digest: s.Digest, Overlays: make(map[string]searchapi.Overlay)}
			byDigest[s.Digest] = j
		}
		j.Repos = append(j.Repos, s.Repos...)
		maps.Copy(j.Overlays, s.Overlays)
	}
	joined := make([]searchapi.Shard, 0, len(byDigest))
	for _, j := range byDigest {
		slices.Sort(j.Repos)
		joined = append(joined, *j)
	}
	return joined
}

// describe adds what the roots know.
func (q *inquiry) describe(e *searchv1.RepoEntry) {
	root, ok := q.layout.Root(e.Name)
	if !ok {
		return
	}
	e.Generation, e.PublishedAt, e.Url = root.Generation, root.PublishedAt, root.Url
	e.Shards, e.IndexBytes = uint64(len(root.Shards)), q.layout.IndexBytes(e.Name)
	e.Branches = nil
	for _, b := range root.Branches {
		e.Branches = append(e.Branches, &searchv1.BranchEntry{Name: b.Name, Commit: b.Commit})
	}
}
