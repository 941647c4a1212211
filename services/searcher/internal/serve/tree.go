package serve

import (
	"cmp"
	"context"
	"math"
	"sync"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// ListTree implements searchv1.SearchServiceServer. The router has set the branch and all bounds, and ended the path of the folder with
// a slash. A folder that is not in the planned shards has no entries.
func (s *Service) ListTree(ctx context.Context, req *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error) {
	defer s.metrics.begin("list_tree")()
	if err := understood(req); err != nil {
		return nil, err
	}
	shards, err := planned(req.Plan)
	if err != nil {
		return nil, err
	}
	ctx, cancel := budget(ctx)
	defer cancel()
	call, err := s.admit(ctx, len(shards))
	if err != nil {
		return nil, err
	}
	defer call.end()
	// The coverage is small beside half an answer.
	most := int(min(cmp.Or(req.MaxBytes, searchapi.DefaultMaxBytes), uint64(cmp.Or(max(s.cfg.MaxAnswer, 0)/2, math.MaxInt))))
	opts := search.TreeOptions{
		Branch: req.Branch, Folder: req.Path, Depth: max(req.Depth, 1), After: req.Plan.GetAfter().GetPath(),
		MaxEntries: int(cmp.Or(req.MaxEntries, searchapi.DefaultTreeEntries)), MaxBytes: most,
	}
	listing := searchapi.Listing{MaxEntries: opts.MaxEntries, MaxBytes: most}
	var mu sync.Mutex
	list := func(ctx context.Context, h *shardcache.Handle, planned searchapi.Shard, overlays map[int]search.Overlay) (error, error) {
		tree, err := h.Shard.Tree(ctx, req.Repo, search.Options{Repos: planned.Repos.Filter(), Overlays: overlays}, opts)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		listing.Add(searchapi.TreeEntries(tree), tree.More)
		return nil, nil
	}
	coverage := s.each(ctx, call, visits{span: "list tree", revision: req.Plan.GetRevision(), shards: shards, visit: list}).Coverage()
	s.metrics.count(coverage)
	return &searchv1.ListTreeResponse{Entries: listing.Entries, More: listing.More, Coverage: searchapi.TrimCoverage(coverage, most/2)}, nil
}
