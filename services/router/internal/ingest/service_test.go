package ingest_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	"github.com/trawl-search/trawl/services/router/internal/ingest"
)

// TestNoSuchRepo: the error of a repo that does not exist, or that is hidden, has the names nearest to its own.
func TestNoSuchRepo(t *testing.T) {
	d := newDesk(t)
	ctx := d.as(access.Spec{Allow: []string{"host/**"}, Scopes: []access.Scope{access.ScopeIngest}})
	for _, name := range []string{"host/pnod", "hidden/pond"} {
		_, get := d.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: name})
		_, deletion := d.DeleteRepo(ctx, &ingestv1.DeleteRepoRequest{Name: name})
		_, reindex := ingest.NewAdmin(nil, d.Service, 1, ingest.Limits{}).ReindexRepo(ctx, &adminv1.ReindexRepoRequest{Name: name})
		for _, err := range []error{get, deletion, reindex} {
			if got := searchapi.NotFoundOf(err); got.GetField() != "name" || !slices.Equal(got.GetNearest(), []string{"host/pond"}) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestNearestReposTakeAdmission: names are compared only for a call that is admitted, as all repos may be read for it.
func TestNearestReposTakeAdmission(t *testing.T) {
	d := newDesk(t)
	ctx := d.as(access.Spec{Allow: []string{"host/**"}, Scopes: []access.Scope{access.ScopeIngest}})
	full := func(context.Context) (func(), error) { return nil, status.Error(codes.ResourceExhausted, "full") }
	s := ingest.New(d.store, letters{t: t}, ingest.Config{PerMinute: 1, Admit: full, NearestRepos: pond}, space(d.store), nil, slog.New(slog.DiscardHandler))
	for _, name := range []string{"host/pnod", "hidden/pond"} {
		if _, err := s.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: name}); status.Code(err) != codes.NotFound || searchapi.NotFoundOf(err) != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
