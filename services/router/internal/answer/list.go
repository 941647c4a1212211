package answer

import (
	"context"
	"maps"
	"slices"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchwire"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/admission"
)

// List implements searchv1.SearchServiceServer.
func (s *Service) List(ctx context.Context, req *searchv1.ListRequest) (resp *searchv1.ListResponse, err error) {
	start := s.metrics.begin()
	defer func() { s.metrics.observe("list", start, resp.GetCoverage(), err) }()
	if err := refusePlan(req.Plan); err != nil {
		return nil, err
	}
	whole, asking, cancel := s.cfg.Budget.split(ctx)
	defer cancel()
	turn, err := s.admit(whole, "list", start, admission.Interactive)
	if err != nil {
		return nil, err
	}
	defer turn.end()
	q, err := s.begin(asking, turn, req.Query, max(req.SyntaxVersion, 1), req.Consistency, 0)
	if err != nil {
		return nil, err
	}
	entries := q.list(asking, "fan out", q.text, q.wanted, req.MaxSkippedFiles)
	entries = q.complete(asking, entries, req.MaxSkippedFiles)
	resp = &searchv1.ListResponse{RevisionToken: catalog.EncodeToken(q.layout.Revision)}
	if resp.Coverage, err = q.close(whole, false); err != nil {
		return nil, err
	}
	resp.Repos = searchwire.MergeEntries(int(req.MaxSkippedFiles), entries)
	for _, e := range resp.Repos {
		q.describe(e)
	}
	return resp, nil
}

// complete adds, for the repos that match in some of their shards only, what
// their other shards hold: an entry is about the whole repo.
func (q *inquiry) complete(ctx context.Context, entries []*searchv1.RepoEntry, maxSkipped uint32) []*searchv1.RepoEntry {
	matched := byName(entries)
	var others []searchwire.Shard
	for name, parts := range matched {
		if shards := q.layout.ShardsOf(name); len(parts) < len(shards) {
			others = append(others, shards...)
		}
	}
	if len(others) == 0 {
		return entries
	}
	again := q.list(ctx, "describe repos", everything, joined(others), maxSkipped)
	maps.Copy(matched, byName(again))
	return slices.Concat(slices.Collect(maps.Values(matched))...)
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
func joined(shards []searchwire.Shard) []searchwire.Shard {
	byDigest := make(map[searchwire.Digest]*searchwire.Shard)
	for _, s := range shards {
		j := byDigest[s.Digest]
		if j == nil {
			j = &searchwire.Shard{Digest: s.Digest, Overlays: make(map[string]searchwire.Overlay)}
			byDigest[s.Digest] = j
		}
		j.Repos = append(j.Repos, s.Repos...)
		maps.Copy(j.Overlays, s.Overlays)
	}
	joined := make([]searchwire.Shard, 0, len(byDigest))
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
