package follow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/catalog/follow"
)

// hooked is a KV that calls hooks around each read of a range.
type hooked struct {
	clientv3.KV

	before, after func()
}

func (h hooked) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if op := clientv3.OpGet(key, opts...); len(op.RangeBytes()) == 0 {
		return h.KV.Get(ctx, key, opts...)
	}
	h.before()
	answer, err := h.KV.Get(ctx, key, opts...)
	h.after()
	return answer, err
}

// ending is a Watcher whose first watches end at once, so that there are more lists.
type ending struct {
	clientv3.Watcher

	left *atomic.Int64
}

func endingFirst(n int64, w clientv3.Watcher) ending {
	e := ending{w, &atomic.Int64{}}
	e.left.Store(n)
	return e
}

func (e ending) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if e.left.Add(-1) < 0 {
		return e.Watcher.Watch(ctx, key, opts...)
	}
	ended := make(chan clientv3.WatchResponse)
	close(ended)
	return ended
}

// TestLostWhileListing: whatever happens around the second list, a follower calls Lost if etcd went back, and
// only then.
func TestLostWhileListing(t *testing.T) {
	for what, c := range map[string]struct {
		clock         string
		before, after func(w *world) // the second list is read
		lost          int64
	}{
		"nothing happens":     {clock: "in/clock"},
		"changes before it":   {clock: "in/clock", before: func(w *world) { w.put("in/clock"); w.put("elsewhere"); w.now() }},
		"a change after it":   {clock: "in/clock", after: func(w *world) { w.put("elsewhere"); w.now() }},
		"a tick after it":     {clock: "in/clock", after: func(w *world) { w.put("in/clock"); w.now() }},
		"more after it":       {clock: "in/clock", after: func(w *world) { w.put("in/clock"); w.put("elsewhere"); w.now(); w.now() }},
		"a look after it":     {clock: "clock", after: func(w *world) { w.put("clock"); time.Sleep(6 * time.Second) }},
		"looks before, after": {clock: "clock", before: func(w *world) { w.put("clock"); time.Sleep(6 * time.Second) }, after: func(w *world) { w.put("elsewhere"); time.Sleep(6 * time.Second) }},

		"back":                        {clock: "in/clock", before: func(w *world) { w.goBack() }, lost: 1},
		"back, noticed":               {clock: "in/clock", before: func(w *world) { w.goBack(); w.noticed() }, lost: 1},
		"back, noticed, and further":  {clock: "in/clock", before: func(w *world) { w.goBack(); w.noticed(); w.further() }, lost: 1},
		"back, and as far elsewhere":  {clock: "in/clock", before: func(w *world) { w.goBack(); w.put("in/clock"); w.elsewhere() }, lost: 1},
		"back, noticed after it":      {clock: "in/clock", after: func(w *world) { w.goBack(); w.noticed() }, lost: 2}, // the list was of the lost history, too
		"back, looked at, further":    {clock: "clock", before: func(w *world) { w.goBack(); time.Sleep(6 * time.Second); w.further() }, lost: 1},
		"a clock elsewhere goes back": {clock: "clock", before: func(w *world) { w.goBack(); w.put("clock"); w.elsewhere() }, lost: 1},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				etcd := etcdtest.New()
				w := &world{t: t, etcd: etcd.Client(nil), clock: c.clock}
				w.put(c.clock)
				w.put("in/a")
				w.goBack = etcd.Copy()
				w.elsewhere()
				client, lists, lost := etcd.Client(nil), 0, atomic.Int64{}
				at := func(do func(*world)) {
					if lists == 2 && do != nil {
						do(w)
					}
				}
				client.KV = hooked{client.KV, func() { lists++; at(c.before) }, func() { at(c.after) }}
				client.Watcher = endingFirst(1, client.Watcher)
				w.follower = &follow.Follower{
					Client: client, Keys: follow.Range{From: "in/", To: "in0"}, Clock: c.clock, Log: slog.New(slog.DiscardHandler),
					Apply: func(follow.Update) {}, Lost: func() { lost.Add(1) },
				}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { w.follower.Run(ctx) })
				time.Sleep(time.Minute)
				cancel()
				running.Wait()
				if lost.Load() != c.lost {
					t.Errorf("lost %d times, want %d, in %d lists", lost.Load(), c.lost, lists)
				}
			})
		})
	}
}

// world is what happens around a follower.
type world struct {
	t        *testing.T
	etcd     *clientv3.Client
	clock    string
	goBack   func()
	follower *follow.Follower
	values   int
}

// put writes a value that no key had before.
func (w *world) put(key string) {
	w.t.Helper()
	w.values++
	if _, err := w.etcd.Put(w.t.Context(), key, fmt.Sprint(w.values)); err != nil {
		w.t.Error(err)
	}
}

// elsewhere makes ten changes of neither the range nor the clock.
func (w *world) elsewhere() {
	for range 10 {
		w.put("elsewhere")
	}
}

// further brings etcd beyond where it ever was, the clock too.
func (w *world) further() {
	w.elsewhere()
	w.elsewhere()
	w.put(w.clock)
}

func (w *world) now() {
	w.t.Helper()
	if _, err := w.follower.Now(w.t.Context()); err != nil {
		w.t.Error(err)
	}
}

// noticed is a Now that finds etcd back. It cannot wait for a list, which goes on only afterwards.
func (w *world) noticed() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	if _, err := w.follower.Now(ctx); !errors.Is(err, follow.ErrWentBack) {
		w.t.Errorf("got %v", err)
	}
}

// TestNowDoesNotAnswerBeforeLost: until Lost has returned the reader has what is lost, and takes it for
// current if Now answers.
func TestNowDoesNotAnswerBeforeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := etcdtest.New()
		w := &world{t: t, etcd: etcd.Client(nil), clock: "in/clock"}
		w.put(w.clock)
		goBack := etcd.Copy()
		w.put(w.clock)
		lost := 0
		w.follower = &follow.Follower{
			Client: w.etcd, Keys: follow.Range{From: "in/", To: "in0"}, Clock: w.clock, Log: slog.New(slog.DiscardHandler),
			Apply: func(follow.Update) {}, Lost: func() { lost++; w.noticed() },
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.follower.Run(ctx) })
		time.Sleep(time.Second)
		goBack()
		time.Sleep(time.Minute) // it looks by itself
		w.now()
		cancel()
		running.Wait()
		if lost != 1 {
			t.Errorf("lost %d times", lost)
		}
	})
}

// TestAHealthyEtcdIsNeverLost: lists of several pages, which watches that end make again and again, writes and
// reads at once never look as if etcd had gone back.
func TestAHealthyEtcdIsNeverLost(t *testing.T) {
	etcd := startEtcd(t)
	w := &world{t: t, etcd: etcd, clock: "in/clock"}
	for i := range 1200 { // more than two pages of a listing
		w.put(fmt.Sprintf("in/%04d", i))
	}
	const lists = 20
	client := clientv3.NewCtxClient(t.Context())
	var listed, lost atomic.Int64
	client.KV, client.Watcher = etcd.KV, endingFirst(lists, etcd.Watcher)
	done := make(chan struct{})
	w.follower = &follow.Follower{
		Client: client, Keys: follow.Range{From: "in/", To: "in0"}, Clock: w.clock, Log: slog.New(slog.DiscardHandler),
		Apply: func(u follow.Update) {
			if u.Reset && listed.Add(1) == lists+1 {
				close(done)
			}
		},
		Lost: func() { lost.Add(1) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.follower.Run(ctx) })
	for _, do := range []func(){func() { w.put(w.clock); w.put("elsewhere") }, w.now, w.now} {
		running.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					do()
				}
			}
		})
	}
	<-done
	cancel()
	running.Wait()
	if lost.Load() != 0 {
		t.Errorf("lost %d times in %d lists", lost.Load(), lists)
	}
}

// TestListsTakeTheirTime: a listing lasts as long as its pages take, however many there are. Its pages arrive in order, and those of
// a listing that failed are followed by all pages of the next one.
func TestListsTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := etcdtest.New()
		w := &world{t: t, etcd: etcd.Client(nil), clock: "in/clock"}
		w.put(w.clock)
		var want []string
		for i := range 1400 {
			want = append(want, fmt.Sprintf("in/%04d", i))
			w.put(want[i])
		}
		want = append(want, w.clock)
		client, pages, fails := etcd.Client(nil), 0, errors.New("this page fails")
		client.KV = failing{hooked{client.KV, func() { pages++; time.Sleep(20 * time.Second) }, func() {}}, func() error {
			if pages == 2 {
				return fails
			}
			return nil
		}}
		var listed []string
		reset := make(chan follow.Update, 1)
		w.follower = &follow.Follower{
			Client: client, Keys: follow.Range{From: "in/", To: "in0"}, Clock: w.clock, Log: slog.New(slog.DiscardHandler),
			Page: func(kvs []*mvccpb.KeyValue, first bool) {
				if first {
					listed = nil
				}
				for _, kv := range kvs {
					listed = append(listed, string(kv.Key))
				}
			},
			Apply: func(u follow.Update) { reset <- u },
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.follower.Run(ctx) })
		if u := <-reset; !u.Reset || len(u.Puts) > 0 || !slices.Equal(listed, want) || pages != 4 {
			t.Errorf("%d keys in %d pages, and %d with the reset", len(listed), pages, len(u.Puts))
		}
		cancel()
		running.Wait()
	})
}

// failing is a KV whose reads of a range fail, once they were made, if fails says so.
type failing struct {
	hooked

	fails func() error
}

func (f failing) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	answer, err := f.hooked.Get(ctx, key, opts...)
	if op := clientv3.OpGet(key, opts...); err == nil && len(op.RangeBytes()) > 0 {
		err = f.fails()
	}
	return answer, err
}
