package search

import (
	"context"
	"math"
	"strings"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// list asks for the repos that match in the shards, and returns their entries in order of
// name. Where these take more memory than a query may, those of the last names are
// left out, which cut reports.
func (q *inquiry) list(ctx context.Context, span, text string, shards []searchapi.Shard, maxSkipped uint32) (entries []*searchv1.RepoEntry, cut bool) {
	set := newResultSet(q.service.cfg.Limits.queryBytes(), func(a, b *searchv1.RepoEntry) int {
		return strings.Compare(a.Name, b.Name)
	}, searchapi.EntryMemory)
	type list = *resultList[*searchv1.RepoEntry]
	call := func(ctx context.Context, c searchv1.SearchServiceClient, shards []searchapi.Shard, h *hearing) (fanout.Reply[list], error) {
		l := set.open()
		coverage, err := q.askForEntries(ctx, c, shards, h, text, maxSkipped, l.add)
		if err != nil {
			l.drop()
		}
		return fanout.Reply[list]{Value: l, Coverage: coverage}, err
	}
	var lists []list
	ask(ctx, q, span, shards, call, func(l list) { lists = append(lists, l) })
	entries, why := set.merge(math.MaxInt, lists...)
	return entries, why != notCut
}

// names asks for the names of repos that match in the shards, for the text's next
// type:repo that is not resolved. They are as many as the layout has at most.
func (q *inquiry) names(ctx context.Context, shards []searchapi.Shard) (names []string) {
	call := func(ctx context.Context, c searchv1.SearchServiceClient, shards []searchapi.Shard, h *hearing) (r fanout.Reply[[]string], err error) {
		r.Coverage, err = q.askForEntries(ctx, c, shards, h, q.text, 0, func(e *searchv1.RepoEntry) { r.Value = append(r.Value, e.Name) })
		return r, err
	}
	ask(ctx, q, "resolve repos", shards, call, func(some []string) { names = append(names, some...) })
	return names
}

// askForEntries asks one searcher for the entries of repos that match: for the text's
// next type:repo that is not resolved or, when all are, for the whole text.
func (q *inquiry) askForEntries(ctx context.Context, c searchv1.SearchServiceClient, shards []searchapi.Shard, h *hearing,
	text string, maxSkipped uint32, keep func(*searchv1.RepoEntry),
) (*searchv1.Coverage, error) {
	stream, err := c.StreamList(ctx, &searchv1.StreamListRequest{List: &searchv1.ListRequest{
		Query: text, SyntaxVersion: q.version, MaxSkippedFiles: maxSkipped, Plan: q.plan(text, shards, nil),
	}}, h.options()...)
	if err != nil {
		return nil, err
	}
	return receive(stream, h, func(m *searchv1.StreamListResponse) error {
		for _, e := range m.Repos {
			keep(e)
		}
		return nil
	})
}
