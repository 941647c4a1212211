package catalog_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// silentEtcd is an etcd that answers nothing while it is silent: calls wait for their
// context.
type silentEtcd struct {
	silent atomic.Bool
	view   *catalog.View
}

// inSilence runs a test with a view that keeps contact with an etcd, in a bubble.
func inSilence(t *testing.T, f func(t *testing.T, e *silentEtcd)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &silentEtcd{}
		client := etcdtest.New().Client(func(ctx context.Context) error {
			if e.silent.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		e.view = catalog.NewView(ctx, catalog.New(client, ""), quiet())
		var keeping sync.WaitGroup
		keeping.Go(func() { e.view.KeepContact(ctx) })
		if _, err := e.view.Current(t.Context()); err != nil {
			t.Fatal(err)
		}
		f(t, e)
		cancel()
		keeping.Wait()
		e.view.Close()
	})
}

// ask is a query of at most a minute; it returns how long it took.
func (e *silentEtcd) ask(t *testing.T, read func(context.Context) (*catalog.Snapshot, error)) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	_, err := read(ctx)
	return time.Since(start), err
}

// TestAwayEtcdFailsFast: second by second, a linearizable read waits no longer than the
// patience after etcd's last answer, and then not at all; bounded reads are answered as
// long as their bound allows; when etcd is back, all is as before.
func TestAwayEtcdFailsFast(t *testing.T) {
	const patience = 5 * time.Second
	inSilence(t, func(t *testing.T, e *silentEtcd) {
		within := func(age time.Duration) func(context.Context) (*catalog.Snapshot, error) {
			return func(ctx context.Context) (*catalog.Snapshot, error) { return e.view.Within(ctx, age) }
		}
		reach := func(ctx context.Context) (*catalog.Snapshot, error) { return e.view.Reach(ctx, 1<<40) }
		// Without a query, the view is known to be current. The queries below are asked halfway
		// between two probes.
		time.Sleep(time.Hour + 500*time.Millisecond)
		e.silent.Store(true)
		silentSince := time.Now()
		for time.Since(silentSince) < time.Minute {
			for what, read := range map[string]func(context.Context) (*catalog.Snapshot, error){
				"Current": e.view.Current, "Reach": reach, "Within 0": within(0),
			} {
				before := time.Since(silentSince)
				took, err := e.ask(t, read)
				if !errors.Is(err, catalog.ErrAway) || took > max(0, patience-before) {
					t.Fatalf("%s after %v of silence: %v after %v", what, before, err, took)
				}
			}
			age := time.Since(silentSince) + 2*time.Second
			if took, err := e.ask(t, within(age)); err != nil || took > 0 {
				t.Fatalf("Within %v: %v after %v", age, err, took)
			}
			if silence := e.view.Silence(); silence < time.Since(silentSince) || silence > age {
				t.Fatalf("silence is %v after %v", silence, time.Since(silentSince))
			}
			time.Sleep(time.Second)
		}
		e.silent.Store(false)
		time.Sleep(patience + 2*time.Second) // a probe that had begun, a pause, and another probe
		for what, read := range map[string]func(context.Context) (*catalog.Snapshot, error){"Current": e.view.Current, "Within 0": within(0)} {
			if took, err := e.ask(t, read); err != nil || took > 0 {
				t.Errorf("%s when etcd is back: %v after %v", what, err, took)
			}
		}
		if _, err := e.ask(t, reach); !errors.Is(err, catalog.ErrFuture) {
			t.Errorf("Reach when etcd is back: %v", err)
		}
	})
}

// TestElectionsAreWaitedFor: a silence as long as the election of a leader fails no read.
func TestElectionsAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silentUntil atomic.Int64
		client := etcdtest.New().Client(func(ctx context.Context) error {
			for time.Now().UnixNano() < silentUntil.Load() && ctx.Err() == nil {
				time.Sleep(100 * time.Millisecond)
			}
			return ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		view := catalog.NewView(ctx, catalog.New(client, ""), quiet())
		var keeping sync.WaitGroup
		keeping.Go(func() { view.KeepContact(ctx) })
		for range 10 {
			time.Sleep(10 * time.Second)
			silentUntil.Store(time.Now().Add(3 * time.Second).UnixNano())
			if _, err := view.Current(ctx); err != nil {
				t.Errorf("during an election: %v", err)
			}
		}
		cancel()
		keeping.Wait()
		view.Close()
	})
}

// heldWatcher brings nothing until it is released.
type heldWatcher struct {
	clientv3.Watcher

	released chan struct{}
}

func (w heldWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		for resp := range w.Watcher.Watch(ctx, key, opts...) {
			select {
			case <-w.released:
			case <-ctx.Done():
			}
			select {
			case out <- resp:
			case <-ctx.Done():
			}
		}
	}()
	return out
}

// TestLateWatchIsNoOutage: while the watch is behind, etcd is not away: reads wait for it.
func TestLateWatchIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := etcdtest.New()
		client := etcd.Client(nil)
		held := heldWatcher{client.Watcher, make(chan struct{})}
		client.Watcher = held
		ctx, cancel := context.WithCancel(t.Context())
		view := catalog.NewView(ctx, catalog.New(client, ""), quiet())
		var keeping sync.WaitGroup
		keeping.Go(func() { view.KeepContact(ctx) })
		if _, err := view.Current(ctx); err != nil {
			t.Fatal(err)
		}
		if _, _, err := catalog.New(etcd.Client(nil), "").PutDesired(ctx, &catalogv1.Desired{Name: "r"}); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			waiting, end := context.WithTimeout(ctx, 990*time.Millisecond)
			if _, err := view.Current(waiting); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("while the watch is behind: %v", err)
			}
			end()
		}
		close(held.released)
		if _, err := view.Current(ctx); err != nil {
			t.Errorf("when the watch has caught up: %v", err)
		}
		cancel()
		keeping.Wait()
		view.Close()
	})
}

// TestContactCountsFromBeforeTheRead: at whatever moment of a slow probe something changes that the watch
// does not bring, Within gives no roots from before the change once that is longer ago than the bound.
// It gives them until then, if a probe showed that they were current.
func TestContactCountsFromBeforeTheRead(t *testing.T) {
	const way, age = 2 * time.Second, 8 * time.Second
	for phase := time.Duration(0); phase < 2*way+time.Second; phase += 500 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			etcd := etcdtest.New()
			client := etcd.Client(func(ctx context.Context) error {
				time.Sleep(way)
				return ctx.Err()
			})
			w := &deafWatcher{Watcher: client.Watcher}
			client.Watcher = w
			ctx, cancel := context.WithCancel(t.Context())
			view := catalog.NewView(ctx, catalog.New(client, ""), quiet())
			current(t, view)
			var keeping sync.WaitGroup
			keeping.Go(func() { view.KeepContact(ctx) })
			time.Sleep(time.Minute + phase)
			w.deaf.Store(true)
			putDesired(t, catalog.New(etcd.Client(nil), ""), modelRepo)
			changed, answers := time.Now(), 0
			for time.Since(changed) < 2*age {
				asking, end := context.WithTimeout(ctx, time.Millisecond)
				if _, err := view.Within(asking, age); err == nil {
					if answers++; time.Since(changed) > age {
						t.Errorf("phase %v: roots are given that have been old for %v", phase, time.Since(changed))
					}
				}
				end()
				time.Sleep(100 * time.Millisecond)
			}
			if answers == 0 {
				t.Errorf("phase %v: nothing is answered within %v of a change", phase, age)
			}
			cancel()
			keeping.Wait()
			view.Close()
		})
	}
}
