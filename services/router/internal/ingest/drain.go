package ingest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/searchapi"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// administersAll fails for a caller who is not an administrator of every repo: searchers hold the shards of all, and
// sources and limits are for all callers.
func administersAll(ctx context.Context, what string) error {
	if caller, err := access.From(ctx); err == nil && caller.May(access.ScopeAdmin) && access.SeesAll(caller) {
		return nil
	}
	return status.Error(codes.PermissionDenied, what+" need a token with the scope admin for all repos: --allow '**' without --deny")
}

// ListSearchers implements adminv1.AdminServiceServer.
func (s *Admin) ListSearchers(ctx context.Context, _ *adminv1.ListSearchersRequest) (*adminv1.ListSearchersResponse, error) {
	if err := administersAll(ctx, "searchers"); err != nil {
		return nil, err
	}
	census, err := membership.TakeCensus(ctx, s.etcd, s.store.Prefix())
	if err != nil {
		return nil, storeError(ctx, "list searchers", err)
	}
	return &adminv1.ListSearchersResponse{Searchers: searchers(census)}, nil
}

// searchers are those of a census, in order of id.
func searchers(census *membership.Census) (all []*adminv1.Searcher) {
	live := make(map[membership.ID]bool)
	for _, s := range census.Searchers {
		live[s.GetId()] = true
		all = append(all, searcher(census, s))
	}
	for id := range census.Drained {
		if !live[id] {
			all = append(all, &adminv1.Searcher{Id: id, State: adminv1.SearcherState_SEARCHER_STATE_GONE})
		}
	}
	slices.SortFunc(all, func(a, b *adminv1.Searcher) int { return cmp.Compare(a.Id, b.Id) })
	return all
}

func searcher(census *membership.Census, s *catalogv1.Searcher) *adminv1.Searcher {
	out := &adminv1.Searcher{
		Id: s.GetId(), Zone: s.GetZone(), Address: s.GetAddress(), Version: s.GetVersion(), ShardFormats: s.GetShardFormats(),
		StartedAt: s.GetStartedAt(), State: adminv1.SearcherState_SEARCHER_STATE_ACTIVE,
	}
	for _, d := range census.Disks[s.GetId()] {
		out.Shards, out.ShardBytes, out.Loading = d.GetShards(), d.GetShardBytes(), d.GetLoading()
	}
	if !s.GetDraining() && census.Drained[s.GetId()] == nil {
		return out
	}
	// If the searcher does not know yet that it must drain, the reports of the other searchers
	// do not wait for it either.
	out.State, out.Awaited = adminv1.SearcherState_SEARCHER_STATE_DRAINING, census.Awaited(s.GetId())
	if s.GetDraining() && len(out.Awaited) == 0 {
		out.State = adminv1.SearcherState_SEARCHER_STATE_DRAINED
	}
	return out
}

// DrainSearcher implements adminv1.AdminServiceServer. The last searcher that takes shards cannot be
// drained: nobody would take its shards.
func (s *Admin) DrainSearcher(ctx context.Context, req *adminv1.DrainSearcherRequest) (*adminv1.DrainSearcherResponse, error) {
	if err := administersAll(ctx, "searchers"); err != nil {
		return nil, err
	}
	census, err := membership.TakeCensus(ctx, s.etcd, s.store.Prefix())
	if err != nil {
		return nil, storeError(ctx, "drain searcher", err)
	}
	var known []string
	for _, s := range searchers(census) {
		known = append(known, s.Id)
	}
	remaining := 0
	for _, s := range census.Searchers {
		if own := s.GetId() == req.Id; own && req.Undo || !own && !s.GetDraining() && census.Drained[s.GetId()] == nil {
			remaining++
		}
	}
	switch {
	case !slices.Contains(known, req.Id):
		return nil, searchapi.NotFound("id", fmt.Sprintf("there is no searcher %q", req.Id), searchapi.Nearest(req.Id, known))
	case remaining == 0 && !req.Undo:
		return nil, status.Errorf(codes.FailedPrecondition, "no other searcher would take the shards of %q: start one first", req.Id)
	}
	if err := membership.SetDrained(ctx, s.etcd, s.store.Prefix(), req.Id, !req.Undo); err != nil {
		return nil, storeError(ctx, "drain searcher", err)
	}
	return &adminv1.DrainSearcherResponse{Remaining: uint32(remaining), Replication: uint32(s.replication)}, nil
}
