package search

import (
	"context"
	"math"
	"strings"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// list asks for the repos within a span that match in the shards, and returns their entries by
// name. If they exceed the memory of a query, the last names are left out and cut is
// true.
func (e *execution) list(ctx context.Context, round string, asked *question, shards []searchapi.Shard, span *searchv1.RepoSpan, maxSkipped uint32) (entries []*searchv1.RepoEntry, cut bool) {
	set := newResultSet(e.service.cfg.Limits.queryBytes(), func(a, b *searchv1.RepoEntry) int {
		return strings.Compare(a.Name, b.Name)
	}, searchapi.EntryMemory)
	type list = *resultList[*searchv1.RepoEntry]
	resolved := e.resolved
	ask := func(ctx context.Context, c searchv1.SearchServiceClient, shards []searchapi.Shard, result *callResult) (fanout.Reply[list], error) {
		l := set.open()
		coverage, err := e.askForEntries(ctx, c, shards, result, asked, resolved, span, maxSkipped, l.add)
		return fanout.Reply[list]{Value: l, Coverage: coverage, Drop: l.drop}, err
	}
	var lists []list
	fanOut(ctx, e, round, shards, ask, func(l list) { lists = append(lists, l) })
	entries, why := set.merge(math.MaxInt, lists...)
	return entries, why != notCut
}

// listNames asks for the names of the repos that match the next unresolved type:repo
// in the shards. The layout bounds their number.
func (e *execution) listNames(ctx context.Context, shards []searchapi.Shard) (names []string) {
	resolved := e.resolved
	ask := func(ctx context.Context, c searchv1.SearchServiceClient, shards []searchapi.Shard, result *callResult) (r fanout.Reply[[]string], err error) {
		r.Coverage, err = e.askForEntries(ctx, c, shards, result, e.asked, resolved, nil, 0, func(entry *searchv1.RepoEntry) { r.Value = append(r.Value, entry.Name) })
		return r, err
	}
	fanOut(ctx, e, "resolve repos", shards, ask, func(some []string) { names = append(names, some...) })
	return names
}

// askForEntries asks one searcher for the entries of matching repos. The searcher
// evaluates the next unresolved type:repo of the question, or all of it if all are
// resolved.
func (e *execution) askForEntries(ctx context.Context, c searchv1.SearchServiceClient, shards []searchapi.Shard, result *callResult,
	asked *question, resolved []*searchv1.RepoNames, span *searchv1.RepoSpan, maxSkipped uint32, keep func(*searchv1.RepoEntry),
) (*searchv1.Coverage, error) {
	req := &searchv1.StreamListRequest{List: &searchv1.ListRequest{
		Query: asked.text, Tree: asked.treeFor(e.layout, shards), SyntaxVersion: e.asked.version, MaxSkippedFiles: maxSkipped, Plan: e.planFor(asked, resolved, shards, nil, span),
	}}
	return receive(ctx, c.StreamList, req, result, func(m *searchv1.StreamListResponse) error {
		for _, entry := range m.Repos {
			keep(entry)
		}
		return nil
	})
}
