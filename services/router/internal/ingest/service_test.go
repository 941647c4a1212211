package ingest_test

import (
	"slices"
	"testing"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestNoSuchRepo: the error of a repo that does not exist, or that is hidden, has the names nearest to its own.
func TestNoSuchRepo(t *testing.T) {
	d := newDesk(t)
	ctx := d.as(access.Spec{Allow: []string{"host/**"}, Scopes: []access.Scope{access.ScopeIngest}})
	for _, name := range []string{"host/pnod", "hidden/pond"} {
		_, get := d.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: name})
		_, deletion := d.DeleteRepo(ctx, &ingestv1.DeleteRepoRequest{Name: name})
		for _, err := range []error{get, deletion} {
			if got := searchapi.NotFoundOf(err); got.GetField() != "name" || !slices.Equal(got.GetNearest(), []string{"host/pond"}) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
