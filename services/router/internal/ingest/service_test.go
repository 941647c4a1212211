package ingest_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

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

// TestPutRepoKeeps: a request keeps the branches and facts of the one before that it does not give, and their bytes count.
func TestPutRepoKeeps(t *testing.T) {
	d := newDesk(t)
	admin := d.as(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeAdmin}})
	caller := d.as(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeIngest}})
	const url, name = "https://git.example.com/a", "git.example.com/a"
	facts := &ingestv1.RepoFacts{Archived: true, Meta: map[string]string{"team": "x"}, Rank: 20, Id: 7}
	given := func(names ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: names} }
	withRank := func(rank uint32) *ingestv1.RepoFacts {
		other := proto.CloneOf(facts)
		other.Rank = rank
		return other
	}
	for _, step := range []struct {
		who      context.Context
		put      *ingestv1.PutRepoRequest
		branches string
		facts    *ingestv1.RepoFacts
	}{
		{admin, &ingestv1.PutRepoRequest{Branches: []string{"main", "v*"}, Facts: facts}, "main v*", facts},
		{caller, &ingestv1.PutRepoRequest{}, "main v*", facts},
		{caller, &ingestv1.PutRepoRequest{Branches: []string{"HEAD"}}, "HEAD", facts},
		{admin, &ingestv1.PutRepoRequest{Facts: &ingestv1.RepoFacts{Rank: 30}, FactsMask: given("rank")}, "HEAD", withRank(30)},
		{caller, &ingestv1.PutRepoRequest{Facts: &ingestv1.RepoFacts{Rank: 40, Id: 9, Archived: true}, FactsMask: given("archived")}, "HEAD", withRank(30)},
		{admin, &ingestv1.PutRepoRequest{FactsMask: given("rank")}, "HEAD", withRank(0)},
		{admin, &ingestv1.PutRepoRequest{Facts: &ingestv1.RepoFacts{Rank: 20, Id: 7}, FactsMask: given("id", "rank")}, "HEAD", facts},
		{caller, &ingestv1.PutRepoRequest{Facts: &ingestv1.RepoFacts{Fork: true}}, "HEAD", &ingestv1.RepoFacts{Fork: true, Id: 7}},
		{admin, &ingestv1.PutRepoRequest{Url: "https://git.example.com/b", Name: name}, "", &ingestv1.RepoFacts{Id: 7}}, // another repository
		{admin, &ingestv1.PutRepoRequest{Name: name}, "", &ingestv1.RepoFacts{Id: 7}},
	} {
		step.put.Url = cmp.Or(step.put.Url, url)
		if _, err := d.PutRepo(step.who, step.put); err != nil {
			t.Fatalf("%v: %v", step.put, err)
		}
		got, err := d.GetRepo(step.who, &ingestv1.GetRepoRequest{Name: name})
		if err != nil || strings.Join(got.GetBranches(), " ") != step.branches || !proto.Equal(got.GetFacts(), step.facts) {
			t.Errorf("after %v: %v, %v", step.put, got, err)
		}
	}
	var puts sync.WaitGroup
	for _, put := range []*ingestv1.PutRepoRequest{
		{Url: url, Facts: &ingestv1.RepoFacts{Rank: 50}, FactsMask: given("rank")}, {Url: url, Facts: &ingestv1.RepoFacts{Id: 5}, FactsMask: given("id")},
		{Url: url, Facts: &ingestv1.RepoFacts{Fork: true}, FactsMask: given("fork", "meta")}, {Url: url, Branches: []string{"dev"}},
	} {
		puts.Go(func() {
			if _, err := d.PutRepo(admin, put); err != nil {
				t.Errorf("%v: %v", put, err)
			}
		})
	}
	puts.Wait()
	got, err := d.GetRepo(admin, &ingestv1.GetRepoRequest{Name: name})
	if want := (&ingestv1.RepoFacts{Rank: 50, Id: 5, Fork: true}); err != nil || !proto.Equal(got.GetFacts(), want) || !slices.Equal(got.GetBranches(), []string{"dev"}) {
		t.Errorf("after several requests at once: %v, %v, want %v", got, err, want)
	}
	large := strings.Repeat("x", 900)
	meta := map[string]string{}
	for i := range 14 {
		meta[strconv.Itoa(i)] = large
	}
	if _, err := d.PutRepo(admin, &ingestv1.PutRepoRequest{Url: url, Facts: &ingestv1.RepoFacts{Meta: meta}}); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if err == nil {
			err = d.put(caller, "", url)
		}
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("what is kept does not count: %v", err)
	}
	branches := make([]string, 1000)
	for i := range branches {
		branches[i] = fmt.Sprint("branch", i)
	}
	if _, err := d.PutRepo(admin, &ingestv1.PutRepoRequest{Url: url, Branches: branches}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("branches and the facts that are kept take more than a record may: %v", err)
	}
}
