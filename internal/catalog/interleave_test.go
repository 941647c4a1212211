package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// modelRepo is the repo of the tests on a model of etcd.
const modelRepo = "repo"

// numbers are the epochs and generations that a repo ever had.
type numbers struct {
	t           *testing.T
	what        string
	epochs      map[uint64]bool
	generations map[uint64]bool
}

func (n *numbers) put(s *catalog.Store) error {
	epoch, _, err := s.PutDesired(n.t.Context(), &catalogv1.Desired{Name: modelRepo})
	if err == nil && n.epochs[epoch] {
		n.t.Errorf("%s: epoch %d comes twice", n.what, epoch)
	}
	if err == nil {
		n.epochs[epoch] = true
	}
	return err
}

func (n *numbers) remove(s *catalog.Store) error {
	_, err := s.DeleteRepo(n.t.Context(), modelRepo)
	return err
}

// publish is a job. It may learn of its publication after a later job has published.
func (n *numbers) publish(s *catalog.Store) error {
	lease, err := s.AcquireLease(n.t.Context(), modelRepo, time.Hour)
	if err != nil {
		return err
	}
	defer lease.Release(n.t.Context())
	next := nextRoot(lease)
	if _, err := s.Publish(n.t.Context(), lease, lease.Root(), next); err != nil {
		return err
	}
	if n.generations[next.Generation] {
		n.t.Errorf("%s: generation %d comes twice", n.what, next.Generation)
	}
	n.generations[next.Generation] = true
	return nil
}

// operation is one operation on the repo, step by step.
type operation struct {
	name  string
	steps []func(*numbers, *catalog.Store) error
}

// TestNumbersNeverComeTwice interrupts each operation on a repo before and after each of
// its calls of etcd, by each other operation. In any order, no generation and no epoch
// of the repo comes twice, even across deletions.
func TestNumbersNeverComeTwice(t *testing.T) {
	put, remove, publish := (*numbers).put, (*numbers).remove, (*numbers).publish
	steps := func(name string, all ...func(*numbers, *catalog.Store) error) operation { return operation{name, all} }
	interrupted := 0
	for _, before := range []operation{steps("nothing"), steps("publish", put, publish), steps("delete", put, publish, remove)} {
		for _, outer := range []operation{steps("put", put), steps("delete", remove), steps("publish", publish)} {
			for _, inner := range []operation{
				steps("put", put), steps("delete", remove), steps("publish", publish),
				steps("put and publish", put, publish), steps("put and delete", put, remove), steps("put, publish and delete", put, publish, remove),
				steps("delete and put", remove, put), steps("delete, put and publish", remove, put, publish),
			} {
				for at := 1; interrupt(t, before, outer, inner, at); at++ {
					interrupted++
				}
			}
		}
	}
	if interrupted < 200 {
		t.Errorf("only %d interruptions", interrupted)
	}
}

// interrupt does the inner operation at a point of the outer one. It reports whether the
// outer one has that point.
func interrupt(t *testing.T, before, outer, inner operation, at int) (reached bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		etcd := etcdtest.New()
		n := &numbers{
			t: t, what: fmt.Sprintf("after %s, %s, at its point %d %s", before.name, outer.name, at, inner.name),
			epochs: map[uint64]bool{}, generations: map[uint64]bool{},
		}
		// Any step may be refused: the lease is held, the repo not desired.
		do := func(o operation, s *catalog.Store) {
			for _, step := range o.steps {
				_ = step(n, s)
			}
		}
		direct, points := catalog.New(etcd.Client(nil), ""), 0
		do(before, direct)
		do(outer, catalog.New(etcd.Client(func(ctx context.Context) error {
			if points++; points == at {
				reached = true
				do(inner, direct)
			}
			return ctx.Err()
		}), ""))
		if err := errors.Join(n.put(direct), n.publish(direct)); err != nil {
			t.Errorf("%s: then %v", n.what, err)
		}
		for g := range n.generations {
			if newest := uint64(len(n.generations)); g > newest {
				t.Errorf("%s: the generations are not 1 to %d: %v", n.what, newest, n.generations)
			}
		}
	})
	return reached
}

// deafWatcher holds back what a watch brings while it is deaf. Unlike laggard it can do
// so in a bubble of synctest.
type deafWatcher struct {
	clientv3.Watcher
	deaf atomic.Bool
}

// Watch implements clientv3.Watcher.
func (w *deafWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		for resp := range w.Watcher.Watch(ctx, key, opts...) {
			for w.deaf.Load() && ctx.Err() == nil {
				time.Sleep(time.Second)
			}
			select {
			case out <- resp:
			case <-ctx.Done():
			}
		}
	}()
	return out
}

// TestCurrentWaitsForTheNextRevision: a view that has everything but the very next
// revision does not claim to be current, whatever that revision changed.
func TestCurrentWaitsForTheNextRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := etcdtest.New()
		s, client := catalog.New(etcd.Client(nil), ""), etcd.Client(nil)
		w := &deafWatcher{Watcher: client.Watcher}
		client.Watcher = w
		v := catalog.NewView(t.Context(), catalog.New(client, ""), quiet())
		defer v.Close()
		putDesired(t, s, modelRepo)
		lease, err := s.AcquireLease(t.Context(), modelRepo, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		// Each change is one transaction, right after that of the change before.
		for _, change := range []struct {
			name       string
			do         func() (int64, error)
			generation uint64 // afterwards
		}{
			{"a request", func() (int64, error) { return putAgain(t, s) }, 0},
			{"a publication", func() (int64, error) { return s.Publish(t.Context(), lease, nil, nextRoot(lease)) }, 1},
			{"another request", func() (int64, error) { return putAgain(t, s) }, 1},
			{"a deletion", func() (int64, error) { return s.DeleteRepo(t.Context(), modelRepo) }, 0},
			{"a request of a new life", func() (int64, error) { return putAgain(t, s) }, 0},
		} {
			before := current(t, v)
			w.deaf.Store(true)
			revision, err := change.do()
			if err != nil {
				t.Fatalf("%s: %v", change.name, err)
			}
			if change.name != "a request" && revision != before.Revision+1 {
				t.Errorf("%s has revision %d: the view was at %d, so this shows nothing", change.name, revision, before.Revision)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if old, err := v.Current(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s at %d: a view that has not heard of it says that it is current: %+v, %v", change.name, revision, old, err)
			}
			cancel()
			w.deaf.Store(false)
			after := current(t, v)
			root, _ := after.Root(modelRepo)
			if got := root.GetGeneration(); after.Revision < revision || got != change.generation {
				t.Errorf("%s: generation %d at %d, want %d at %d", change.name, got, after.Revision, change.generation, revision)
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func putAgain(t *testing.T, s *catalog.Store) (revision int64, err error) {
	t.Helper()
	_, revision, err = s.PutDesired(t.Context(), &catalogv1.Desired{Name: modelRepo})
	return revision, err
}

// TestWithinCountsFromBeforeTheRead: a snapshot is known to be current as of the moment
// before etcd was asked, not of the moment when the answer came.
func TestWithinCountsFromBeforeTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const way, age = 4 * time.Second, 10 * time.Second
		etcd := etcdtest.New()
		s := catalog.New(etcd.Client(nil), "")
		var slow atomic.Bool
		client := etcd.Client(func(ctx context.Context) error {
			if slow.Load() {
				time.Sleep(way)
			}
			return ctx.Err()
		})
		w := &deafWatcher{Watcher: client.Watcher}
		client.Watcher = w
		v := catalog.NewView(t.Context(), catalog.New(client, ""), quiet())
		defer v.Close()
		current(t, v)
		time.Sleep(age)
		slow.Store(true)
		w.deaf.Store(true)
		began := time.Now()
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			if _, err := v.Within(t.Context(), age/2); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(way + time.Second) // etcd has been asked, and its answer is on its way
		putDesired(t, s, modelRepo)
		<-asked
		slow.Store(false)
		time.Sleep(age + time.Nanosecond - time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if old, err := v.Within(ctx, age); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("roots that were current %v ago are given for those of the last %v: %+v, %v", time.Since(began), age, old, err)
		}
	})
}
