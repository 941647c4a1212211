package catalog_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog"
)

// laggard holds back etcd's events while it is locked.
type laggard struct {
	clientv3.Watcher

	lag sync.Mutex
}

// Watch implements clientv3.Watcher.
func (w *laggard) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	from, to := w.Watcher.Watch(ctx, key, opts...), make(chan clientv3.WatchResponse)
	go func() {
		defer close(to)
		for resp := range from {
			w.lag.Lock()
			w.lag.Unlock() //nolint:staticcheck // only to wait
			select {
			case to <- resp:
			case <-ctx.Done():
			}
		}
	}()
	return to
}

// TestCurrentWaitsForTheWatch: a view that has not yet received an acknowledged
// change does not claim to be current, whatever the change was.
func TestCurrentWaitsForTheWatch(t *testing.T) {
	s := newStore(t)
	client := connect(t, shared.Endpoint())
	w := &laggard{Watcher: client.Watcher}
	client.Watcher = w
	v := newView(t, catalog.New(client, "/"+t.Name()+"/"))
	putDesired(t, s, "repo")
	publication := func() { publish(t, s, "repo") }
	deletion := func() {
		if _, err := s.DeleteRepo(t.Context(), "repo"); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name       string
		change     func()
		generation uint64
	}{{"first publication", publication, 1}, {"second publication", publication, 2}, {"deletion", deletion, 0}} {
		current(t, v)
		w.lag.Lock()
		tt.change()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		old, err := v.Current(ctx)
		cancel()
		w.lag.Unlock()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: a view that has not heard of it says that it is current: %+v, %v", tt.name, old, err)
		}
		root, _ := current(t, v).Root("repo")
		if got := root.GetGeneration(); got != tt.generation {
			t.Errorf("%s: generation %d, want %d", tt.name, got, tt.generation)
		}
	}
}
