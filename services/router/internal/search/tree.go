package search

import (
	"cmp"
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// ListTree implements searchv1.SearchServiceServer. It asks all shards of the repo, each of which may hold a part of the folder.
func (s *Service) ListTree(ctx context.Context, req *searchv1.ListTreeRequest) (resp *searchv1.ListTreeResponse, err error) {
	start := s.metrics.begin()
	defer func() { s.metrics.observe("list_tree", start, resp.GetCoverage(), err) }()
	if err := refusePlan(req.Plan); err != nil {
		return nil, err
	}
	folder := searchapi.TreePath(req.Path)
	if len(folder) > 0 {
		folder = append(folder, '/')
	}
	mark := pageQuestion{Query: fmt.Sprintf("tree of %q on %q, %q to depth %d", req.Repo, req.Branch, folder, max(req.Depth, 1))}
	from, err := listedUpTo(mark, req.PageToken)
	if err != nil {
		return nil, err
	}
	asking, l, err := s.lookup(ctx, "list_tree", start, req.Consistency, from.Revision)
	if err != nil {
		return nil, err
	}
	defer l.end()
	root, branch, err := l.root(req.Repo, req.Branch)
	if err != nil {
		return nil, l.withNearest(asking, &searchv1.GetFileRequest{Repo: req.Repo}, err)
	}
	resp = &searchv1.ListTreeResponse{Branch: branch, RevisionToken: l.layout.token()}
	if resp.Branch == "" && len(root.Branches) > 0 {
		resp.Branch = root.Branches[0].Name
	}
	resp.Commit = l.layout.Commit(req.Repo, resp.Branch, "")
	most := s.cfg.Limits.bytes(req.MaxBytes)
	asked := &searchv1.ListTreeRequest{
		Repo: req.Repo, Path: folder, Branch: resp.Branch, Depth: max(req.Depth, 1),
		MaxEntries: cmp.Or(req.MaxEntries, searchapi.DefaultTreeEntries), MaxBytes: uint64(most),
	}
	listing, coverage, err := l.tree(asking, asked, from.After.Path)
	if err != nil {
		return nil, err
	}
	if len(listing.Entries) == 0 && len(folder) > 0 && len(req.PageToken) == 0 && coverage.Complete {
		return nil, searchapi.FolderNotFound(req, resp.Branch, l.nearestPaths(asking, req.Repo, resp.Branch, folder))
	}
	resp.Coverage = searchapi.TrimCoverage(coverage, most/2)
	listing.MaxBytes = most - proto.Size(resp) - tokenRoom
	listing.Add(nil, false) // as far as it fits
	resp.Entries = listing.Entries
	if !listing.More {
		return resp, nil
	}
	for n := len(resp.Entries); n > 0 && resp.NextPageToken == nil; n-- { // a page ends where its token has room for the path
		cursor := pageCursor{Revision: l.layout.Revision}
		cursor.After.Path = resp.Entries[n-1].Path
		resp.Entries, resp.NextPageToken = resp.Entries[:n], encodePageToken(mark, cursor)
	}
	if resp.NextPageToken == nil {
		return nil, searchapi.FieldError(codes.FailedPrecondition, "max_entries", "a page token cannot hold the paths of this page: raise max_entries")
	}
	return resp, nil
}

// tree asks for the entries after a path.
func (l *lookup) tree(ctx context.Context, req *searchv1.ListTreeRequest, after []byte) (*searchapi.Listing, *searchv1.Coverage, error) {
	shards := l.layout.ShardsOf(req.Repo)
	e := &execution{
		service: l.service, ticket: l.ticket, layout: l.layout, coverage: searchapi.NewAccount(shards),
		fingerprint: textFingerprint("tree", req.Repo+"\x00"+string(req.Path), 0),
	}
	ask := func(ctx context.Context, c searchv1.SearchServiceClient, shards []searchapi.Shard, result *callResult) (fanout.Reply[*searchv1.ListTreeResponse], error) {
		plan := &searchv1.Plan{Revision: l.layout.Revision, After: &searchv1.OrderKey{Path: after}}
		for i := range shards {
			plan.Shards = append(plan.Shards, shards[i].Planned())
		}
		resp, err := c.ListTree(ctx, &searchv1.ListTreeRequest{
			Repo: req.Repo, Path: req.Path, Branch: req.Branch, Depth: req.Depth, MaxEntries: req.MaxEntries, MaxBytes: req.MaxBytes, Plan: plan,
		}, result.options()...)
		return fanout.Reply[*searchv1.ListTreeResponse]{Value: resp, Coverage: resp.GetCoverage()}, err
	}
	listing := &searchapi.Listing{MaxEntries: int(req.MaxEntries), MaxBytes: int(req.MaxBytes)}
	fanOut(ctx, e, "list tree", shards, ask, func(resp *searchv1.ListTreeResponse) { listing.Add(resp.Entries, resp.More) })
	coverage, err := e.account(false)
	return listing, coverage, err
}
