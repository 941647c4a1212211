package ingest

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// GetDeletion implements ingestv1.IngestServiceServer. A caller may ask
// about the repos that it may delete.
func (s *Service) GetDeletion(ctx context.Context, req *ingestv1.GetDeletionRequest) (*ingestv1.GetDeletionResponse, error) {
	if !access.Sees(ctx, req.Name) {
		return nil, errNoDeletion()
	}
	revision, err := s.deletedAt(ctx, req)
	if err != nil {
		return nil, err
	}
	d, err := s.store.Deletion(ctx, req.Name, revision)
	if err != nil {
		return nil, storeError(ctx, "get deletion", err)
	}
	if revision > d.Read {
		return nil, ruleError("revision_token", errors.New("the token is of another cluster, or this cluster has lost its data since"))
	}
	return &ingestv1.GetDeletionResponse{Gone: d.Gone(), Places: places(d), RevisionToken: catalog.EncodeToken(revision)}, nil
}

// errNoDeletion is also the error for a repo that the caller may not see.
var errNoDeletion = sync.OnceValue(func() error {
	return searchapi.FieldError(codes.NotFound, "name", "no deletion of a repo with this name is recorded")
})

func (s *Service) deletedAt(ctx context.Context, req *ingestv1.GetDeletionRequest) (int64, error) {
	if len(req.RevisionToken) > 0 {
		revision, err := catalog.DecodeToken(req.RevisionToken)
		if err != nil {
			return 0, ruleError("revision_token", err)
		}
		return revision, nil
	}
	revision, err := s.store.DeletedAt(ctx, req.Name)
	if errors.Is(err, catalog.ErrNotFound) {
		return 0, errNoDeletion()
	}
	if err != nil {
		return 0, storeError(ctx, "get deletion", err)
	}
	return revision, nil
}

// places are all places where bytes of the repo may have been, even if they are gone.
func places(d *catalog.Deletion) []*ingestv1.DeletionPlace {
	all := []*ingestv1.DeletionPlace{
		{Kind: ingestv1.PlaceKind_PLACE_KIND_BUCKET, Gone: !d.InBucket(), Within: d.Collection.GetOwnWithin()},
		{
			Kind: ingestv1.PlaceKind_PLACE_KIND_SHARED_SHARDS, Gone: d.Packs == 0, Within: d.Collection.GetSharedWithin(),
			Shards: uint32(d.Packs),
		},
	}
	for _, disk := range d.Disks {
		kind := ingestv1.PlaceKind_PLACE_KIND_INDEXER
		if disk.GetRole() == membership.SearcherDisk {
			kind = ingestv1.PlaceKind_PLACE_KIND_SEARCHER
		}
		all = append(all, &ingestv1.DeletionPlace{Kind: kind, Name: disk.GetName(), Gone: !d.OnDisk(disk), Within: disk.GetWithin()})
	}
	return all
}
