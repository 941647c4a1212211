package catalog_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestBehindSince holds the lag of random requests, pushes and publications against
// the list of all requests: it is the time of the oldest that is not published, or an
// earlier one if more wait than are kept.
func TestBehindSince(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := catalog.New(etcdtest.New().Client(nil), "")
		now := time.Unix(1_800_000_000, 0)
		asked := map[uint64]time.Time{}
		var newest, published uint64
		var lease *catalog.Lease
		must := func(err error) {
			t.Helper()
			if err != nil {
				rt.Fatal(err)
			}
		}
		steps := map[string]func(*rapid.T){
			"put": func(*rapid.T) {
				epoch, _, err := store.PutDesired(t.Context(), &catalogv1.Desired{Name: "r", RequestedAt: timestamppb.New(now)})
				must(err)
				newest, asked[epoch] = epoch, now
			},
			"push": func(*rapid.T) {
				if newest == 0 {
					return
				}
				epoch, _, err := store.Refresh(t.Context(), "r", nil, now, 0)
				must(err)
				if epoch > 0 {
					newest, asked[epoch] = epoch, now
				}
			},
			"begin": func(*rapid.T) {
				if newest > published && lease == nil {
					var err error
					lease, err = store.AcquireLease(t.Context(), "r", time.Minute)
					must(err)
				}
			},
			"publish": func(*rapid.T) {
				if lease == nil {
					return
				}
				published = lease.Desired().GetEpoch()
				_, err := store.Publish(t.Context(), lease, lease.Root(), &catalogv1.Root{Repo: "r", Generation: lease.NextGeneration(), Epoch: published})
				must(err)
				must(lease.Release(t.Context()))
				lease = nil
			},
			"": func(rt *rapid.T) {
				now = now.Add(time.Second)
				if newest == 0 {
					return
				}
				status, err := store.RepoStatus(t.Context(), "r")
				must(err)
				got := status.GetFreshness().GetBehindSince()
				if newest <= published {
					if got != nil {
						rt.Fatalf("all is published, and it is behind since %v", got.AsTime())
					}
					return
				}
				want, waiting := asked[newest], 0
				for epoch, at := range asked {
					if epoch > published {
						waiting++
						if at.Before(want) {
							want = at
						}
					}
				}
				if late := got.AsTime().Sub(want); late > 0 || late < 0 && waiting <= 8 && len(asked) <= 8 {
					rt.Fatalf("%d requests wait, the oldest since %v, and it is behind since %v", waiting, want, got.AsTime())
				}
			},
		}
		rt.Repeat(steps)
		if lease != nil {
			must(lease.Release(t.Context()))
		}
	})
}

// TestSeen: a reported commit is stored, also while a request waits already, and is
// deleted with the repo.
func TestSeen(t *testing.T) {
	store := catalog.New(etcdtest.New().Client(nil), "")
	seen := func(commit string, by ingestv1.SeenBy) *catalogv1.Seen {
		return &catalogv1.Seen{Branch: "main", Commit: commit, At: timestamppb.New(time.Unix(1_800_000_000, 0)), By: by}
	}
	want := func(what, commit, indexed string, by ingestv1.SeenBy) {
		t.Helper()
		listed, _, err := store.ListRepoStatus(t.Context(), "", "", 0)
		if err != nil || len(listed) != 1 {
			t.Fatalf("%s: %v, %v", what, listed, err)
		}
		one, err := store.RepoStatus(t.Context(), "r")
		if err != nil || !proto.Equal(one, listed[0]) {
			t.Errorf("%s: %v alone, %v in the list; %v", what, one, listed[0], err)
		}
		if f := one.GetFreshness(); f.GetSeenCommit() != commit || f.GetIndexedCommit() != indexed || f.GetSeenBy() != by || f.GetSeenAt() == nil {
			t.Errorf("%s: %v, want seen %q by %v, indexed %q", what, f, commit, by, indexed)
		}
	}
	put := func() {
		t.Helper()
		if _, _, err := store.PutDesired(t.Context(), &catalogv1.Desired{Name: "r", RequestedAt: timestamppb.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	refresh := func(s *catalogv1.Seen) {
		t.Helper()
		if _, _, err := store.Refresh(t.Context(), "r", s, time.Now(), 0); err != nil {
			t.Fatal(err)
		}
	}
	put()
	want("asked for", "", "", ingestv1.SeenBy_SEEN_BY_REQUEST)
	refresh(seen("c1", ingestv1.SeenBy_SEEN_BY_WEBHOOK)) // the request waits
	want("pushed while it waits", "c1", "", ingestv1.SeenBy_SEEN_BY_WEBHOOK)
	lease, err := store.AcquireLease(t.Context(), "r", time.Minute)
	if err != nil || lease.Seen().GetCommit() != "c1" {
		t.Fatalf("the job learns of %v, %v", lease.Seen(), err)
	}
	_, err = store.Publish(t.Context(), lease, nil, &catalogv1.Root{
		Repo: "r", Generation: 1, Epoch: 1, Branches: []*catalogv1.Branch{{Name: "dev", Commit: "d1"}, {Name: "main", Commit: "c1"}},
	})
	if err != nil || lease.Release(t.Context()) != nil {
		t.Fatal(err)
	}
	want("published", "c1", "c1", ingestv1.SeenBy_SEEN_BY_WEBHOOK)
	refresh(seen("c2", ingestv1.SeenBy_SEEN_BY_POLL))
	want("moved", "c2", "c1", ingestv1.SeenBy_SEEN_BY_POLL)
	if _, err := store.DeleteRepo(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if err := store.PutSeen(t.Context(), "r", seen("c3", ingestv1.SeenBy_SEEN_BY_POLL)); err != nil {
		t.Fatal(err)
	}
	put()
	want("deleted and put again", "", "", ingestv1.SeenBy_SEEN_BY_REQUEST)
}
