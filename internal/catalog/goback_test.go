package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/embedded/embeddedtest"
)

// history makes the repos a, b and lost, of which a copy that was taken in between has no lost
// and the first generation of b.
func history(t *testing.T, etcd *embeddedtest.Etcd) (copied string) {
	t.Helper()
	store := func() *catalog.Store { return catalog.New(etcd.Client(), "") }
	for _, name := range []string{"a", "b"} {
		putDesired(t, store(), name)
		publish(t, store(), name)
	}
	copied = etcd.Copy()
	publish(t, store(), "b")
	putDesired(t, store(), "lost")
	publish(t, store(), "lost")
	return copied
}

// further writes other changes than history, and more of them.
func further(t *testing.T, etcd *embeddedtest.Etcd) {
	t.Helper()
	store := catalog.New(etcd.Client(), "")
	for i := range 10 {
		name := fmt.Sprint("other", i)
		putDesired(t, store, name)
		publish(t, store, name)
	}
}

// TestEtcdGoesBack: once etcd runs on a copy of its data, or on none, a view has what etcd has,
// and nothing of what etcd had: also if etcd is further than it was before the view reaches it
// again, when all its revisions look like the next ones.
func TestEtcdGoesBack(t *testing.T) {
	for what, change := range map[string]func(t *testing.T, etcd *embeddedtest.Etcd, copied string){
		"to a copy":               func(_ *testing.T, etcd *embeddedtest.Etcd, copied string) { etcd.GoBack(copied) },
		"to nothing":              func(_ *testing.T, etcd *embeddedtest.Etcd, _ string) { etcd.LoseAll() },
		"to a copy, and further":  func(t *testing.T, etcd *embeddedtest.Etcd, copied string) { etcd.GoBack(copied); further(t, etcd) },
		"to nothing, and further": func(t *testing.T, etcd *embeddedtest.Etcd, _ string) { etcd.LoseAll(); further(t, etcd) },
	} {
		t.Run(what, func(t *testing.T) {
			etcd := embeddedtest.Start(t)
			copied := history(t, etcd)
			g := newGate(t, etcd.Endpoint())
			var log strings.Builder
			v := catalog.NewView(t.Context(), catalog.New(connect(t, g.endpoint()), ""), slog.New(slog.NewTextHandler(&log, nil)))
			defer v.Close()
			if n := len(namesIn(current(t, v))); n != 3 {
				t.Fatalf("%d roots", n)
			}
			g.shut()
			change(t, etcd, copied)
			g.open(t)
			store := catalog.New(etcd.Client(), "")
			sameAsStore(t, store, current(t, v))
			within, err := v.Within(t.Context(), time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			sameAsStore(t, store, within)
			if n, lost := v.Losses(); n == 0 || lost {
				t.Errorf("went back %d times, lost %v", n, lost)
			}
			putDesired(t, store, "next")
			publish(t, store, "next")
			sameAsStore(t, store, current(t, v))
			v.Close()
			if !strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("the log says nothing loud: %s", log.String())
			}
		})
	}
}

// TestGarbageInACompactedEtcd: an etcd that went back and has compacted all that was before, as a restore with
// --mark-compacted does, makes no garbage of what it serves again. A compaction by itself changes nothing.
func TestGarbageInACompactedEtcd(t *testing.T) {
	for what, goBack := range map[string]bool{"went back": true, "healthy": false} {
		t.Run(what, func(t *testing.T) {
			etcd := embeddedtest.Start(t)
			store := func() *catalog.Store { return catalog.New(etcd.Client(), "") }
			putDesired(t, store(), "repo")
			lease := acquire(t, store(), "repo")
			shard, manifest := catalog.ShardKey(lease.Fence(), [32]byte{1}), catalog.ManifestKey(lease.Fence(), "repo", 1, [32]byte{2})
			if _, err := store().Publish(t.Context(), lease, nil, rootWith(lease, manifest, shard)); err != nil {
				t.Fatal(err)
			}
			release(t, lease)
			copied := etcd.Copy()
			publish(t, store(), "repo")
			before := reach(t, store())
			if goBack {
				etcd.GoBack(copied)
			}
			for i := range 20 {
				putDesired(t, store(), fmt.Sprint("other", i))
			}
			if _, err := etcd.Client().Compact(t.Context(), reach(t, store()).Revision); err != nil {
				t.Fatal(err)
			}
			now, err := store().Continue(t.Context(), before)
			if goBack && errors.Is(err, catalog.ErrWentBack) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{shard, manifest} {
				if !before.Garbage(key) || now.Garbage(key) == goBack {
					t.Errorf("%s: garbage before %v, now %v", key, before.Garbage(key), now.Garbage(key))
				}
			}
		})
	}
}

// unlistable is a KV whose lists fail while broken.
type unlistable struct {
	clientv3.KV

	broken *atomic.Bool
}

var errUnlistable = errors.New("cannot be listed")

func (u unlistable) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if op := clientv3.OpGet(key, opts...); u.broken.Load() && len(op.RangeBytes()) > 0 {
		return nil, errUnlistable
	}
	return u.KV.Get(ctx, key, opts...)
}

// TestLostRootsAreNotCurrent: between the moment at which a view notices that etcd went back and
// a new list, roots of the lost history count for no query.
func TestLostRootsAreNotCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd, broken := etcdtest.New(), &atomic.Bool{}
		truth, client := catalog.New(etcd.Client(nil), ""), etcd.Client(nil)
		client.KV = unlistable{client.KV, broken}
		v := catalog.NewView(t.Context(), catalog.New(client, ""), quiet())
		defer v.Close()
		putDesired(t, truth, "a")
		publish(t, truth, "a")
		goBack := etcd.Copy()
		lost := publish(t, truth, "a")
		current(t, v)
		broken.Store(true)
		goBack()
		time.Sleep(6 * time.Second) // it looks by itself
		for what, read := range map[string]func(context.Context) (*catalog.Snapshot, error){
			"current": v.Current,
			"within":  func(ctx context.Context) (*catalog.Snapshot, error) { return v.Within(ctx, time.Hour) },
			"reach":   func(ctx context.Context) (*catalog.Snapshot, error) { return v.Reach(ctx, lost) },
			"wait":    func(ctx context.Context) (*catalog.Snapshot, error) { return v.WaitFor(ctx, 1) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if s, err := read(ctx); err == nil {
				t.Errorf("%s: answered with revision %d of the lost history", what, s.Revision)
			}
			cancel()
		}
		if n, lost := v.Losses(); n != 1 || !lost {
			t.Errorf("went back %d times, lost %v", n, lost)
		}
		broken.Store(false)
		s, err := v.Within(t.Context(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		sameAsStore(t, truth, s)
		if !slices.Equal(namesIn(s), []string{"a"}) {
			t.Error("the root before is not served")
		}
	})
}

// TestSameRevisionsOfAnotherHistory: what etcd did since it went back has the same revisions as what
// it had done before, and more follows before anybody looks: only the values of the clock differ.
func TestSameRevisionsOfAnotherHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := etcdtest.New()
		truth := catalog.New(etcd.Client(nil), "")
		v := newView(t, catalog.New(etcd.Client(nil), ""))
		putDesired(t, truth, "a")
		putDesired(t, truth, "b")
		goBack := etcd.Copy()
		lost := publish(t, truth, "a")
		current(t, v)
		goBack()
		if again := publish(t, truth, "b"); again != lost {
			t.Fatalf("revision %d, want %d again", again, lost)
		}
		publish(t, truth, "a")
		sameAsStore(t, truth, current(t, v))
		v.Close()
	})
}
