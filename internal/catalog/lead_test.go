package catalog_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
)

// leaders notes who leads.
type leaders struct {
	mu      sync.Mutex
	leading []int
	most    int
}

func (l *leaders) duty(id int) func(context.Context) {
	return func(ctx context.Context) {
		l.mu.Lock()
		l.leading = append(l.leading, id)
		l.most = max(l.most, len(l.leading))
		l.mu.Unlock()
		<-ctx.Done()
		l.mu.Lock()
		l.leading = slices.DeleteFunc(l.leading, func(other int) bool { return other == id })
		l.mu.Unlock()
	}
}

func (l *leaders) now() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.leading)
}

// TestOneLeads has three candidates: when the leader or its lease ends, another one
// leads.
func TestOneLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		etcd := etcdtest.New()
		var l leaders
		var running sync.WaitGroup
		stops := map[int]context.CancelFunc{}
		for id := range 3 {
			ctx, stop := context.WithCancel(t.Context())
			stops[id] = stop
			running.Go(func() {
				catalog.New(etcd.Client(nil), "").Lead(ctx, "duty", ttl, slog.New(slog.DiscardHandler), l.duty(id))
			})
			time.Sleep(time.Second)
		}
		expect := func(when string, id int) {
			t.Helper()
			synctest.Wait()
			if now := l.now(); !slices.Equal(now, []int{id}) {
				t.Fatalf("%s: %v lead, want %d", when, now, id)
			}
		}
		expect("at first", 0)
		time.Sleep(10 * ttl)
		expect("after a long time", 0)

		stops[0]()
		expect("after the leader's end, at once", 1)

		if l.most != 1 {
			t.Errorf("%d led at once", l.most)
		}
		// From here two may lead for a moment: the first hears of it later.
		keys, err := etcd.Client(nil).Get(t.Context(), catalog.DefaultPrefix+"elections/", clientv3.WithFirstCreate()...)
		if err != nil || len(keys.Kvs) != 1 {
			t.Fatal(keys, err)
		}
		etcd.Expire(string(keys.Kvs[0].Key))
		time.Sleep(ttl)
		expect("after the leader's lease has ended", 2)

		stops[2]()
		time.Sleep(2 * time.Second)
		expect("the one that lost it is a candidate again", 1)
		stops[1]()
		running.Wait()
		if len(l.now()) != 0 {
			t.Errorf("at the end %v lead", l.now())
		}
	})
}

// TestLeadershipIsLostWithEtcd: a leader that cannot reach etcd stops in time.
func TestLeadershipIsLostWithEtcd(t *testing.T) {
	g := newGate(t, shared.Endpoint())
	s := catalog.New(connect(t, g.endpoint()), "/"+t.Name()+"/")
	ctx, stop := context.WithCancel(t.Context())
	led, lost := make(chan struct{}, 1), make(chan struct{}, 1)
	var running sync.WaitGroup
	running.Go(func() {
		s.Lead(ctx, "duty", time.Second, slog.New(slog.DiscardHandler), func(ctx context.Context) {
			led <- struct{}{}
			<-ctx.Done()
			lost <- struct{}{}
		})
	})
	wait := func(what string, c chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatalf("not %s", what)
		}
	}
	wait("led", led)
	g.shut()
	wait("lost", lost)
	g.open(t)
	wait("led again", led)
	stop()
	wait("ended", lost)
	running.Wait()
}
