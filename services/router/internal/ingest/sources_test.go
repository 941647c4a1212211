package ingest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	"github.com/trawl-search/trawl/services/router/internal/ingest"
)

// TestSourcesAreJudgedBeforeTheyAreKept: one that breaks a rule keeps all of them out.
func TestSourcesAreJudgedBeforeTheyAreKept(t *testing.T) {
	store := catalog.New(etcdtest.New().Client(nil), "")
	s := ingest.NewSources(store, origin.Policy{Schemes: []string{"https"}, Hosts: []string{"*.example.com"}})
	ctx := access.With(t.Context(), access.Anyone)
	good := &ingestv1.Source{Name: "good", Kind: "gitea", Url: "https://git.example.com", Owner: "o"}
	for want, bad := range map[string]*ingestv1.Source{
		"is not allowed":   {Name: "x", Kind: "gitea", Url: "https://git.example.org", Owner: "o"},
		"api.github.com":   {Name: "x", Kind: "github", Owner: "o"},
		"scheme":           {Name: "x", Kind: "gitea", Url: "http://git.example.com", Owner: "o"},
		"credentials":      {Name: "x", Kind: "git", Url: "https://u:hunter2@git.example.com/x"},
		"defined twice":    {Name: "good", Kind: "gitea", Url: "https://git.example.com", Owner: "o"},
		"TRAWL_SECRET_":    {Name: "x", Kind: "gitea", Url: "https://git.example.com", Owner: "o", Token: &ingestv1.SecretRef{Env: "HOME"}},
		"owner is missing": {Name: "x", Kind: "gitea", Url: "https://git.example.com"},
	} {
		_, err := s.ApplySources(ctx, &ingestv1.ApplySourcesRequest{Sources: []*ingestv1.Source{good, bad}})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: %v, want %q", bad, err, want)
		}
	}
	list := func() []*ingestv1.SourceStatus {
		t.Helper()
		resp, err := s.ListSources(ctx, &ingestv1.ListSourcesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetSources()
	}
	if got := list(); len(got) > 0 {
		t.Errorf("kept %v", got)
	}
	done, err := s.ApplySources(ctx, &ingestv1.ApplySourcesRequest{Sources: []*ingestv1.Source{good}})
	if err != nil || len(done.GetAdded()) != 1 {
		t.Errorf("%v, %v", done, err)
	}
	if _, err := s.GetSource(ctx, &ingestv1.GetSourceRequest{Name: "goood"}); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), `there is no source "goood"; the nearest: "good"`) {
		t.Errorf("a source that is not there: %v", err)
	}
	// Of 70 repos every third is published and every seventh of the others has failed.
	for i := range 70 {
		name := fmt.Sprintf("r%02d", i)
		if _, _, err := store.PutDesired(t.Context(), &catalogv1.Desired{Name: name, Source: []string{"good", "other"}[min(i/65, 1)]}); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			publish(t, store, name)
		} else if i%7 == 0 {
			if err := store.PutStatus(t.Context(), name, &catalogv1.Status{Epoch: 1, State: ingestv1.State_STATE_FAILED}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, err := s.GetSource(ctx, &ingestv1.GetSourceRequest{Name: "good"}); err != nil || got.GetRepos() != 65 || got.GetPublished() != 22 || got.GetFailed() != 6 || got.GetStatus().GetAppliedAt() == nil {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := s.ApplySources(ctx, &ingestv1.ApplySourcesRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := list(); len(got) != 1 || !got[0].GetRemoved() || got[0].GetReport() != nil {
		t.Errorf("after its removal: %v", got)
	}
}

// TestSourcesAreForThoseWhoSeeAll: an administrator of some repos neither sets sources, which bring
// others, nor learns which exist.
func TestSourcesAreForThoseWhoSeeAll(t *testing.T) {
	d := newDesk(t)
	s := ingest.NewSources(d.store, origin.Policy{Schemes: []string{"https"}})
	good := []*ingestv1.Source{{Name: "good", Kind: "gitea", Url: "https://git.example.com", Owner: "mine"}}
	for what, c := range map[string]struct {
		ctx  context.Context
		want codes.Code
	}{
		"some":          {d.as(access.Spec{Allow: []string{"git.example.com/mine/**"}, Scopes: []access.Scope{access.ScopeAdmin}}), codes.PermissionDenied},
		"all but one":   {d.as(access.Spec{Allow: []string{"**"}, Deny: []string{"x/y"}, Scopes: []access.Scope{access.ScopeAdmin}}), codes.PermissionDenied},
		"not an admin":  {d.as(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeSearch, access.ScopeIngest}}), codes.PermissionDenied},
		"nobody":        {t.Context(), codes.PermissionDenied},
		"all":           {d.as(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeAdmin}}), codes.OK},
		"access is off": {access.With(t.Context(), access.Anyone), codes.OK},
	} {
		_, applied := s.ApplySources(c.ctx, &ingestv1.ApplySourcesRequest{Sources: good})
		_, listed := s.ListSources(c.ctx, &ingestv1.ListSourcesRequest{})
		_, got := s.GetSource(c.ctx, &ingestv1.GetSourceRequest{Name: "good"})
		for _, err := range []error{applied, listed, got} {
			if code := status.Code(err); code != c.want {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
		}
	}
}
