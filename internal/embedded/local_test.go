package embedded_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/trawl-search/trawl/internal/embedded"
)

func startEtcd(tb testing.TB) *embedded.Etcd {
	tb.Helper()
	e, err := embedded.StartEtcd(context.Background(), config(tb.TempDir()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// TestReadsAreLinearizable: this process's client reads every acknowledged write of
// another client, and the other way round.
func TestReadsAreLinearizable(t *testing.T) {
	e := startEtcd(t)
	other, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for i := range 100 {
		from, to := e.Client(), other
		if i%2 == 0 {
			from, to = to, from
		}
		put, err := from.Put(t.Context(), "k", fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		got, err := to.Get(t.Context(), "k")
		if err != nil || string(got.Kvs[0].Value) != fmt.Sprint(i) || got.Header.Revision < put.Header.Revision {
			t.Fatalf("after put %d at revision %d: %v, %v", i, put.Header.Revision, got, err)
		}
	}
}

// TestReadsWhileOthersWrite: a read that begins after a write was acknowledged to any
// client finds it, with many concurrent readers and writers.
func TestReadsWhileOthersWrite(t *testing.T) {
	t.Run("many keys", func(t *testing.T) {
		readWhileOthersWrite(t, func(writer int) string { return fmt.Sprint("k", writer) }, clientv3.WithPrefix())
	})
	t.Run("one key", func(t *testing.T) {
		readWhileOthersWrite(t, func(int) string { return "k" })
	})
}

// readWhileOthersWrite reads k in the way that the options say.
func readWhileOthersWrite(t *testing.T, key func(writer int) string, read ...clientv3.OpOption) {
	e := startEtcd(t)
	other, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var acknowledged atomic.Int64 // the newest revision
	var working sync.WaitGroup
	defer working.Wait()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for i, client := range []*clientv3.Client{other, other, e.Client()} {
		working.Go(func() {
			for ctx.Err() == nil {
				put, err := client.Put(ctx, key(i), "v")
				for err == nil {
					before := acknowledged.Load()
					if before >= put.Header.Revision || acknowledged.CompareAndSwap(before, put.Header.Revision) {
						break
					}
				}
			}
		})
	}
	for n := 0; n < 5000 || acknowledged.Load() < 50; n++ {
		least := acknowledged.Load()
		got, err := e.Client().Get(t.Context(), "k", read...)
		if err != nil {
			t.Fatal(err)
		}
		newest := int64(0)
		for _, kv := range got.Kvs {
			newest = max(newest, kv.ModRevision)
		}
		if newest < least {
			t.Fatalf("read revision %d after %d was acknowledged", newest, least)
		}
	}
}

// TestReadAgain: a read returns the present value of a key, whatever was read before,
// of this or another key.
func TestReadAgain(t *testing.T) {
	c := startEtcd(t).Client()
	want := map[string]string{}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		key := fmt.Sprint(rng.IntN(2))
		switch value := fmt.Sprint(rng.Int()); rng.IntN(6) {
		case 0:
			if _, err := c.Put(t.Context(), key, value); err != nil {
				t.Fatal(err)
			}
			want[key] = value
		case 1:
			if _, err := c.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			delete(want, key)
		default:
			if rng.IntN(4) == 0 {
				if keys, err := c.Get(t.Context(), key, clientv3.WithKeysOnly()); err != nil || len(keys.Kvs) > 0 && len(keys.Kvs[0].Value) > 0 {
					t.Fatalf("key %s alone: %v, %v", key, keys, err)
				}
			}
			got, err := c.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			value, some := want[key]
			if found := len(got.Kvs) == 1 && string(got.Kvs[0].Value) == value; found != some || int(got.Count) != len(got.Kvs) {
				t.Fatalf("key %s: %v, want %q (%t)", key, got, value, some)
			}
		}
	}
}

// TestErrorsAreTheServers: a local call fails as one over a connection does.
func TestErrorsAreTheServers(t *testing.T) {
	e := startEtcd(t)
	if _, err := e.Client().Put(t.Context(), "", "v"); err != rpctypes.ErrEmptyKey { //nolint:errorlint // clients compare it
		t.Errorf("empty key: %v", err)
	}
	if _, err := e.Client().Put(t.Context(), "k", strings.Repeat("x", 2<<20)); err != rpctypes.ErrRequestTooLarge { //nolint:errorlint // as above
		t.Errorf("large value: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Client().Get(ctx, "k"); err == nil {
		t.Error("a read succeeded after its context had ended")
	}
}

// TestCloseWhileCalled: calls that run when etcd closes end, later ones are refused,
// and none reaches the closed database.
func TestCloseWhileCalled(t *testing.T) {
	e := startEtcd(t)
	var calling sync.WaitGroup
	began := make(chan struct{}, 8)
	for i := range cap(began) {
		calling.Go(func() {
			for n := 0; ; n++ {
				var err error
				if i%2 == 0 {
					_, err = e.Client().Get(context.Background(), "k")
				} else {
					_, err = e.Client().Put(context.Background(), fmt.Sprint("k", i), "v")
				}
				if n == 0 {
					began <- struct{}{}
				}
				if err != nil {
					return
				}
			}
		})
	}
	for range cap(began) {
		<-began
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	calling.Wait()
	if _, err := e.Client().Get(context.Background(), "k"); err == nil {
		t.Error("a read succeeded after Close")
	}
}

// BenchmarkRead measures a linearizable read by this process's own client.
func BenchmarkRead(b *testing.B) {
	e := startEtcd(b)
	if _, err := e.Client().Put(b.Context(), "k", "v"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := e.Client().Get(b.Context(), "k"); err != nil {
			b.Fatal(err)
		}
	}
}
