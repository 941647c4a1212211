package gc

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
)

// explore runs every order: run calls choose at every step to learn which of n actors
// goes on.
func explore(run func(choose func(n int) int)) (orders int) {
	type step struct{ choice, of int }
	var path []step
	for {
		at := 0
		run(func(n int) int {
			if at == len(path) {
				path = append(path, step{0, n})
			}
			at++
			return path[at-1].choice
		})
		orders++
		for len(path) > 0 && path[len(path)-1].choice == path[len(path)-1].of-1 {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return orders
		}
		path[len(path)-1].choice++
	}
}

// sample runs some orders at random. Of 300 about two show that running jobs are not respected.
func sample(rng *rand.Rand, run func(choose func(n int) int)) (orders int) {
	for ; orders < 2000; orders++ {
		run(rng.IntN)
	}
	return orders
}

// actor is one of several that take turns: it stops before each of its steps.
type actor struct {
	turn         chan struct{}
	asleep, done atomic.Bool
}

func (a *actor) step() { <-a.turn }

// sleep is a step that lasts until the holds have ended.
func (a *actor) sleep() {
	a.step()
	a.asleep.Store(true)
	time.Sleep(hold + time.Second)
	a.asleep.Store(false)
}

// gated is a client whose transactions, and each beginning of a Reach, are steps.
func gated(client *clientv3.Client, a *actor) *clientv3.Client {
	client.KV = gatedKV{client.KV, a}
	return client
}

type gatedKV struct {
	clientv3.KV

	*actor
}

func (k gatedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if strings.HasSuffix(key, "clock") { // other reads decide nothing, or read the past
		k.step()
	}
	return k.KV.Get(ctx, key, opts...)
}

func (k gatedKV) Txn(ctx context.Context) clientv3.Txn {
	k.step()
	return k.KV.Txn(ctx)
}

// gatedBucket makes puts, deletions and the beginning of a listing steps.
func (w *world) gatedBucket(a *actor) watched {
	before := func(op string) error {
		// The first listing alone is a step: no actor touches what lies between them.
		if op != "list "+catalog.ObjectPrefixes[1] && op != "list "+catalog.ObjectPrefixes[2] {
			a.step()
		}
		return nil
	}
	return watched{w.bucket, before, func(op string) error { w.check("after " + op); return nil }}
}

// TestEveryOrder: an indexer publishes, byte for byte, what an earlier attempt left
// behind as garbage, while that garbage is collected. The indexer's lease may end at
// any moment. The test runs some orders of their steps, or all with TRAWL_TEST_ALL.
func TestEveryOrder(t *testing.T) {
	published, refused := 0, 0
	run := func(choose func(int) int) {
		if t.Failed() {
			choose = func(int) int { return 0 } // ends soon
		}
		synctest.Test(t, func(t *testing.T) {
			if order(t, choose) {
				published++
			} else {
				refused++
			}
		})
	}
	var orders int
	if testrun.All() {
		orders = explore(run)
	} else {
		orders = sample(testrun.Rand(t), run)
	}
	t.Logf("%d orders: %d published, %d refused", orders, published, refused)
	if published == 0 || refused == 0 {
		t.Error("the lease ends too early or too late in all of them")
	}
}

// order runs one order and says whether the indexer published.
func order(t *testing.T, choose func(int) int) (published bool) {
	w := newWorld(t)
	w.want("repo")
	abandoned, err := w.truth.AcquireLease(t.Context(), "repo", leaseTTL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := attempt(t.Context(), w.bucket, abandoned, 1, 0); err != nil {
		t.Fatal(err)
	}
	if err := abandoned.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.takeTurns(choose,
		w.start(func(a *actor) { published = w.index(a) }),
		w.start(w.collectTwice),
		w.start(func(a *actor) {
			a.step()
			w.etcd.Expire(catalog.DefaultPrefix + "leases/repo")
		}),
	)
	w.checkClean()
	return published
}

// takeTurns lets one actor at a time do a step, until all are done.
func (w *world) takeTurns(choose func(int) int, actors ...*actor) {
	for {
		synctest.Wait()
		var waiting []*actor
		for _, a := range actors {
			if a.asleep.Load() {
				time.Sleep(hold + 2*time.Second)
				synctest.Wait()
			}
			if !a.done.Load() {
				waiting = append(waiting, a)
			}
		}
		if len(waiting) == 0 {
			return
		}
		waiting[choose(len(waiting))].turn <- struct{}{}
	}
}

func (w *world) start(run func(*actor)) *actor {
	a := &actor{turn: make(chan struct{})}
	go func() {
		defer func() { a.done.Store(true) }()
		run(a)
	}()
	return a
}

// index is one honest job.
func (w *world) index(a *actor) bool {
	store := catalog.New(gated(w.etcd.Client(nil), a), "")
	ctx := context.Background()
	lease, err := store.AcquireLease(ctx, "repo", leaseTTL)
	if err != nil {
		return false // the time of a hold was more than that of its lease
	}
	defer lease.Release(ctx)
	next, err := attempt(ctx, w.gatedBucket(a), lease, 1, 0)
	if err != nil {
		w.t.Error(err)
		return false
	}
	_, err = store.Publish(ctx, lease, lease.Root(), next)
	w.check("after publishing")
	if err != nil && !errors.Is(err, catalog.ErrLeaseLost) {
		w.t.Error(err)
	}
	return err == nil
}

func (w *world) collectTwice(a *actor) {
	c := w.collector(gated(w.etcd.Client(nil), a), w.gatedBucket(a), 100)
	for i := range 2 {
		if i > 0 {
			a.sleep()
		}
		if _, err := c.Pass(context.Background()); err != nil {
			w.t.Error(err)
		}
	}
}
