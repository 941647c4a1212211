package catalog_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestFullBuildsAreRequestedOnce: a request is made only if neither such a request nor its answer
// exists. It keeps what is desired, and outlives other requests and deltas.
func TestFullBuildsAreRequestedOnce(t *testing.T) {
	s := newStore(t)
	if _, _, err := s.RequestFullBuild(t.Context(), "repo", time.Now()); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("of no repo: %v", err)
	}
	request := func(since time.Time, want bool, epoch uint64) {
		t.Helper()
		got, requested, err := s.RequestFullBuild(t.Context(), "repo", since)
		if err != nil || requested != want || got != epoch {
			t.Errorf("epoch %d, requested %v, %v; want %d, %v", got, requested, err, epoch, want)
		}
	}
	pending := func(want bool) {
		t.Helper()
		repo, err := s.RepoStatus(t.Context(), "repo")
		if err != nil || repo.FullBuildPending != want {
			t.Errorf("%v, %v; want a pending full build: %v", repo, err, want)
		}
	}
	desired := &catalogv1.Desired{Name: "repo", Url: "https://x", Branches: []string{"main"}, Source: "acme", NotBefore: timestamppb.Now()}
	put := func() {
		t.Helper()
		if _, _, err := s.PutDesired(t.Context(), desired); err != nil {
			t.Fatal(err)
		}
	}
	put()
	pending(false)
	before := time.Now()
	request(before, true, 2)
	request(time.Now(), false, 2)
	put() // a push: it answers the request, too
	request(time.Now(), false, 3)
	pending(true)
	got, err := s.GetDesired(t.Context(), "repo")
	if err != nil || got.Record.Url != "https://x" || got.Record.Source != "acme" || got.Record.FullEpoch != 2 || len(got.Record.Branches) != 1 {
		t.Errorf("desired %v, %v", got.Record, err)
	}

	publishBuilt(t, s, 3, time.Now())
	pending(false)
	request(before, false, 3)
	put()
	pending(false)
	request(time.Now(), true, 5)
	if got, err := s.GetDesired(t.Context(), "repo"); err != nil || got.Record.NotBefore != nil {
		t.Errorf("an operator's request waits for pushes: %v, %v", got.Record, err)
	}
}

// publishBuilt publishes the answer to a request.
func publishBuilt(t *testing.T, s *catalog.Store, epoch uint64, at time.Time) {
	t.Helper()
	lease, err := s.AcquireLease(t.Context(), "repo", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	root := nextRoot(lease)
	root.Epoch, root.BuiltInFullAt = epoch, timestamppb.New(at)
	if _, err := s.Publish(t.Context(), lease, lease.Root(), root); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}
