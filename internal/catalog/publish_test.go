package catalog_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

func TestPublishIsOneTransaction(t *testing.T) {
	s := newStore(t)
	putDesired(t, s, "repo")
	for generation := uint64(1); generation <= 3; generation++ {
		lease := acquire(t, s, "repo")
		next := nextRoot(lease)
		revision, err := s.Publish(t.Context(), lease, lease.Root(), next)
		if err != nil {
			t.Fatal(err)
		}
		root, err := s.GetRoot(t.Context(), "repo")
		if err != nil || root.Revision != revision || root.Record.Generation != generation || root.Record.Fence != lease.Fence() {
			t.Fatalf("stored %v at %d, %v; want generation %d, fence %d at %d", root.Record, root.Revision, err, generation, lease.Fence(), revision)
		}
		if changed := eventsAt(t, "/"+t.Name()+"/", revision, revision); !slices.Equal(changed, []string{"PUT roots.clock", "PUT roots/repo"}) {
			t.Errorf("publication changed %q", changed)
		}
		if again, err := s.Publish(t.Context(), lease, lease.Root(), next); err != nil || again != revision {
			t.Errorf("the same publication again: %d, %v, want %d", again, err, revision)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// zombies are jobs that come too late, with the change that happened meanwhile and
// the error that they get.
var zombies = map[string]struct {
	meanwhile func(*testing.T, *catalog.Store, *catalog.Lease)
	want      error
}{
	"lease released": {func(t *testing.T, s *catalog.Store, l *catalog.Lease) {
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}, catalog.ErrLeaseLost},
	"lease taken by another": {func(t *testing.T, s *catalog.Store, l *catalog.Lease) {
		dropLease(t)
		acquire(t, s, "repo")
	}, catalog.ErrLeaseLost},
	"another published": {func(t *testing.T, s *catalog.Store, l *catalog.Lease) {
		dropLease(t)
		publish(t, s, "repo")
	}, catalog.ErrLeaseLost},
	"deleted": {func(t *testing.T, s *catalog.Store, l *catalog.Lease) {
		if _, err := s.DeleteRepo(t.Context(), "repo"); err != nil {
			t.Fatal(err)
		}
	}, catalog.ErrNotDesired},
	"deleted and put again": {func(t *testing.T, s *catalog.Store, l *catalog.Lease) {
		if _, err := s.DeleteRepo(t.Context(), "repo"); err != nil {
			t.Fatal(err)
		}
		putDesired(t, s, "repo")
	}, catalog.ErrNotDesired},
	// The lease would still hold here: only the record's life differs.
	"desired record replaced by hand": {func(t *testing.T, s *catalog.Store, l *catalog.Lease) {
		if _, err := shared.Client().Delete(t.Context(), "/"+t.Name()+"/desired/repo"); err != nil {
			t.Fatal(err)
		}
		putDesired(t, s, "repo")
	}, catalog.ErrNotDesired},
	"own root replaced": {func(t *testing.T, s *catalog.Store, l *catalog.Lease) {
		other := nextRoot(l)
		other.Generation++
		if _, err := s.Publish(t.Context(), l, l.Root(), other); err != nil {
			t.Fatal(err)
		}
	}, catalog.ErrStale},
}

// dropLease ends the lease as etcd does when its time is up.
func dropLease(t *testing.T) {
	t.Helper()
	resp, err := shared.Client().Get(t.Context(), "/"+t.Name()+"/leases/repo")
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatal(resp, err)
	}
	if _, err := shared.Client().Revoke(t.Context(), clientv3.LeaseID(resp.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
}

func TestZombieNeverPublishes(t *testing.T) {
	for name, zombie := range zombies {
		for _, published := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := newStore(t)
				putDesired(t, s, "repo")
				if published {
					publish(t, s, "repo")
				}
				lease := acquire(t, s, "repo")
				next := nextRoot(lease)
				zombie.meanwhile(t, s, lease)
				before, err := s.GetRoot(t.Context(), "repo")
				if err != nil && !errors.Is(err, catalog.ErrNotFound) {
					t.Fatal(err)
				}
				clock, err := s.CurrentRevision(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Publish(t.Context(), lease, lease.Root(), next); !errors.Is(err, zombie.want) {
					t.Errorf("got %v, want %v", err, zombie.want)
				}
				after, _ := s.GetRoot(t.Context(), "repo")
				if !proto.Equal(before.Record, after.Record) || before.Revision != after.Revision {
					t.Errorf("root was %v, is %v", before.Record, after.Record)
				}
				if now, _ := s.CurrentRevision(t.Context()); now != clock {
					t.Error("a refused publication moved the clock")
				}
			})
		}
	}
}

func TestRootNeverGoesBack(t *testing.T) {
	s := newStore(t)
	putDesired(t, s, "repo")
	publish(t, s, "repo")
	if _, err := s.DeleteRepo(t.Context(), "repo"); err != nil {
		t.Fatal(err)
	}
	putDesired(t, s, "repo")
	publish(t, s, "repo")
	lease := acquire(t, s, "repo")
	old := lease.Root()
	for name, change := range map[string]func(*catalogv1.Root){
		"lower generation":             func(r *catalogv1.Root) { r.Generation = 1 },
		"same generation, other shard": func(r *catalogv1.Root) { r.Generation = old.Record.Generation },
		"same generation, more hidden": func(r *catalogv1.Root) {
			r.Generation = old.Record.Generation
			r.Shards = []*catalogv1.ShardRef{proto.CloneOf(old.Record.Shards[0])}
			r.Shards[0].Hidden = []byte{0}
		},
		"same generation, other branches": func(r *catalogv1.Root) {
			r.Generation = old.Record.Generation
			r.Shards = []*catalogv1.ShardRef{proto.CloneOf(old.Record.Shards[0])}
			r.Shards[0].Branches = []uint32{1}
		},
		"lower epoch": func(r *catalogv1.Root) { r.Epoch = 1 },
	} {
		next := nextRoot(lease)
		change(next)
		if _, err := s.Publish(t.Context(), lease, old, next); !errors.Is(err, catalog.ErrGeneration) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := nextRoot(lease)
	other.Repo = "other"
	if _, err := s.Publish(t.Context(), lease, old, other); err == nil {
		t.Error("published the root of another repo")
	}
	// Only the epoch advances: nothing had to be built.
	same := proto.CloneOf(old.Record)
	same.Epoch++
	if _, err := s.Publish(t.Context(), lease, old, same); err != nil {
		t.Errorf("same generation, later epoch: %v", err)
	}
}

// Jobs lose their leases at random moments and publish all the same. The generations
// that are served must follow each other, each of a newer lease.
func TestRacingJobsPublishOneChain(t *testing.T) {
	s := newStore(t)
	_, begin, err := s.PutDesired(t.Context(), &catalogv1.Desired{Name: "repo"})
	if err != nil {
		t.Fatal(err)
	}
	jobs, attempts := 6, testrun.Rounds(50, 150)
	rng := testrun.Rand(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	history := shared.Client().Watch(ctx, "/"+t.Name()+"/roots/", clientv3.WithPrefix(), clientv3.WithRev(begin))
	var wg sync.WaitGroup
	var published sync.Map // fence → revision
	for range jobs {
		wg.Go(func() {
			for range attempts {
				race(ctx, s, rng, &published)
			}
		})
	}
	wg.Wait()
	last, err := s.GetRoot(t.Context(), "repo")
	if err != nil {
		t.Fatal(err)
	}
	var generation uint64
	var fence int64
	for resp := range history {
		for _, e := range resp.Events {
			var root catalogv1.Root
			if err := proto.Unmarshal(e.Kv.Value, &root); err != nil {
				t.Fatal(err)
			}
			if root.Generation != generation+1 || root.Fence <= fence {
				t.Fatalf("generation %d of fence %d after %d of %d", root.Generation, root.Fence, generation, fence)
			}
			generation, fence = root.Generation, root.Fence
			if revision, ok := published.LoadAndDelete(fence); !ok || revision != e.Kv.ModRevision {
				t.Errorf("generation %d is at %d, its job was told %v", generation, e.Kv.ModRevision, revision)
			}
		}
		if resp.Header.Revision >= last.Revision && generation == last.Record.Generation {
			break
		}
	}
	published.Range(func(fence, revision any) bool {
		t.Errorf("job of fence %v was told %v, but its root was never there", fence, revision)
		return true
	})
	t.Logf("%d generations", generation)
}

// race is one job that may lose its lease to another before it publishes.
func race(ctx context.Context, s *catalog.Store, rng *rand.Rand, published *sync.Map) {
	lease, err := s.AcquireLease(ctx, "repo", time.Second)
	if err != nil {
		return
	}
	if rng.IntN(2) == 0 {
		_ = lease.Release(ctx) // a zombie from here on
		time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Millisecond))))
	}
	if revision, err := s.Publish(ctx, lease, lease.Root(), nextRoot(lease)); err == nil {
		published.Store(lease.Fence(), revision)
	}
	_ = lease.Release(context.WithoutCancel(ctx))
}
