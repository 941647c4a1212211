package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Sources is the service of sources. It is safe for concurrent use. It is for
// administrators who see every repo: a source can bring any repo that its host has, and
// names credentials that other sources use too. A pattern of names could not bound that.
type Sources struct {
	ingestv1.UnimplementedSourceServiceServer
	store  *catalog.Store
	policy origin.Policy
}

// NewSources returns the service of sources. It accepts sources that the policy allows.
func NewSources(store *catalog.Store, policy origin.Policy) *Sources {
	return &Sources{store: store, policy: policy}
}

// ApplySources implements ingestv1.SourceServiceServer.
func (s *Sources) ApplySources(ctx context.Context, req *ingestv1.ApplySourcesRequest) (*ingestv1.ApplySourcesResponse, error) {
	if err := administersAll(ctx, "sources"); err != nil {
		return nil, err
	}
	if err := errors.Join(codehost.CheckSources(req.Sources), codehost.CheckAllowed(req.Sources, s.policy)); err != nil {
		return nil, ruleError("sources", err)
	}
	done, err := s.store.ApplySources(ctx, req.Sources)
	if err != nil {
		return nil, storeError(ctx, "apply sources", err)
	}
	return &ingestv1.ApplySourcesResponse{Added: done.Added, Changed: done.Changed, Removed: done.Removed}, nil
}

// ListSources implements ingestv1.SourceServiceServer.
func (s *Sources) ListSources(ctx context.Context, _ *ingestv1.ListSourcesRequest) (*ingestv1.ListSourcesResponse, error) {
	if err := administersAll(ctx, "sources"); err != nil {
		return nil, err
	}
	resp := &ingestv1.ListSourcesResponse{}
	for entry, err := range s.store.ListSources(ctx) {
		if err != nil {
			return nil, storeError(ctx, "list sources", err)
		}
		one, err := s.status(ctx, entry)
		if err != nil {
			return nil, storeError(ctx, "list sources", err)
		}
		resp.Sources = append(resp.Sources, one)
	}
	return resp, nil
}

func (s *Sources) status(ctx context.Context, source catalog.Source) (*ingestv1.SourceStatus, error) {
	record := source.Record
	report, err := s.store.GetSourceReport(ctx, record.GetSpec().GetName())
	if err != nil {
		return nil, err
	}
	stored, err := s.store.IsStored(ctx, source)
	return &ingestv1.SourceStatus{
		Source: record.GetSpec(), Removed: record.GetRemoved(), Report: report, AppliedAt: record.GetAppliedAt(), Stored: stored,
	}, err
}

// GetSource implements ingestv1.SourceServiceServer. It reads the report first, so
// that the counts include what the report names.
func (s *Sources) GetSource(ctx context.Context, req *ingestv1.GetSourceRequest) (*ingestv1.GetSourceResponse, error) {
	if err := administersAll(ctx, "sources"); err != nil {
		return nil, err
	}
	source, err := s.store.GetSource(ctx, req.Name)
	if errors.Is(err, catalog.ErrNotFound) {
		var names []string
		for other, err := range s.store.ListSources(ctx) {
			if err != nil {
				return nil, storeError(ctx, "list sources", err)
			}
			names = append(names, other.Record.GetSpec().GetName())
		}
		return nil, searchapi.NotFound("name", fmt.Sprintf("there is no source %q", req.Name), searchapi.Nearest(req.Name, names))
	}
	if err != nil {
		return nil, storeError(ctx, "get source", err)
	}
	now, err := s.status(ctx, source)
	if err != nil {
		return nil, storeError(ctx, "get source", err)
	}
	n, err := s.store.SourceProgress(ctx, req.Name)
	if err != nil {
		return nil, storeError(ctx, "get source", err)
	}
	return &ingestv1.GetSourceResponse{Status: now, Repos: n.Repos, Published: n.Published, Failed: n.Failed}, nil
}
