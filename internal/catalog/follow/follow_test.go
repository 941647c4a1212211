package follow_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/testrun"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reader applies updates to a map and checks what updates promise.
type reader struct {
	t        *testing.T
	mu       sync.Mutex
	keys     map[string]string
	revision int64
	resets   int
}

func (r *reader) apply(u follow.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u.Reset {
		r.keys = map[string]string{}
		r.resets++
	}
	if u.Revision < r.revision || !u.Reset && u.Revision == r.revision {
		r.t.Errorf("revision %d after %d", u.Revision, r.revision)
	}
	r.revision = u.Revision
	for _, key := range u.Deletes {
		delete(r.keys, key)
	}
	for _, kv := range u.Puts {
		r.keys[string(kv.Key)] = string(kv.Value)
	}
}

func (r *reader) waitFor(revision int64) (keys map[string]string) {
	r.t.Helper()
	testrun.Until(r.t, fmt.Sprint("revision ", revision, " is reached"), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		keys = maps.Clone(r.keys)
		return r.revision >= revision
	})
	return keys
}

func startEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	etcd, err := embedded.StartEtcd(t.Context(), embedded.Config{
		NoSync: true,
		Dir:    t.TempDir(), Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { etcd.Close() })
	return etcd.Client()
}

// Random writes inside and outside the range, with etcd forgetting its history in
// between: two readers, one from the start and one that comes later, must both
// end with what is stored.
func TestReadersEndWithWhatIsStored(t *testing.T) {
	client := startEtcd(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	start := func() *reader {
		r := &reader{t: t}
		running.Go(func() {
			follow.Run(ctx, client, follow.Range{From: "in/", To: "in0"}, "clock", slog.New(slog.DiscardHandler), r.apply)
		})
		return r
	}
	defer running.Wait()
	defer cancel()

	random := testrun.Rand(t)
	for i := range 1200 { // more than two pages of a listing
		if _, err := client.Put(ctx, fmt.Sprintf("in/first%04d", i), "v"); err != nil {
			t.Fatal(err)
		}
	}
	early := start()
	var late *reader
	var last int64
	for i := range 300 {
		last = randomWrite(ctx, t, client, random, i)
		if i%50 == 49 {
			if _, err := client.Compact(ctx, last); err != nil {
				t.Fatal(err)
			}
		}
		if i == 150 {
			late = start()
		}
	}
	// The last write is in the range, so that both must come to it.
	put, err := client.Put(ctx, "in/last", "")
	if err != nil {
		t.Fatal(err)
	}
	want := stored(ctx, t, client)
	for name, r := range map[string]*reader{"early": early, "late": late} {
		if got := r.waitFor(put.Header.Revision); !maps.Equal(got, want) {
			t.Errorf("%s reader has %d keys, stored are %d", name, len(got), len(want))
		}
	}
}

// randomWrite is one transaction of up to three changes.
func randomWrite(ctx context.Context, t *testing.T, client *clientv3.Client, random *rand.Rand, i int) int64 {
	t.Helper()
	ops := map[string]clientv3.Op{}
	for range 1 + random.IntN(3) {
		key := fmt.Sprintf("%s%d", []string{"in/", "in/first000", "out/"}[random.IntN(3)], random.IntN(10))
		if ops[key] = clientv3.OpPut(key, fmt.Sprint(i)); random.IntN(3) == 0 {
			ops[key] = clientv3.OpDelete(key)
		}
	}
	txn := client.Txn(ctx)
	var all []clientv3.Op
	for _, op := range ops {
		all = append(all, op)
	}
	resp, err := txn.Then(all...).Commit()
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Revision
}

func stored(ctx context.Context, t *testing.T, client *clientv3.Client) map[string]string {
	t.Helper()
	resp, err := client.Get(ctx, "in/", clientv3.WithRange("in0"))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for _, kv := range resp.Kvs {
		keys[string(kv.Key)] = string(kv.Value)
	}
	return keys
}

// TestReadsHaveWhatReadersWereTold: a read of etcd that begins after an update was applied has that
// update too. Without waitReadable about one in twenty reads is older with the race detector, one
// in 750 without.
func TestReadsHaveWhatReadersWereTold(t *testing.T) {
	client := startEtcd(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	applied := make(chan int64)
	running.Go(func() {
		follow.Run(ctx, client, follow.Range{From: "in/", To: "in0"}, "clock", slog.New(slog.DiscardHandler), func(u follow.Update) {
			read, err := client.Get(ctx, "in/a")
			if err == nil && read.Header.Revision < u.Revision {
				t.Errorf("told of revision %d, read revision %d", u.Revision, read.Header.Revision)
			}
			select {
			case applied <- u.Revision:
			case <-ctx.Done():
			}
		})
	})
	<-applied // the listing
	for i := range 400 {
		var put sync.WaitGroup
		put.Go(func() {
			if _, err := client.Put(ctx, "in/a", fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
		<-applied // without waiting for the put to be acknowledged
		put.Wait()
	}
}
