package etcdtest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/testrun"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// described is an answer with revisions counted from base.
func described(base int64, header int64, kvs []*mvccpb.KeyValue) string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %d:", header-base)
	for _, kv := range kvs {
		fmt.Fprintf(&b, " %s=%s(%d,%d,%d)", kv.Key, kv.Value, kv.CreateRevision-base, kv.ModRevision-base, kv.Version)
	}
	return b.String()
}

// step does one random operation and describes its answer.
func step(ctx context.Context, c *clientv3.Client, base int64, rng *rand.Rand) string {
	key := func() string { return fmt.Sprintf("/k/%d", rng.IntN(5)) }
	if rng.IntN(3) == 0 {
		opts := [][]clientv3.OpOption{
			nil, {clientv3.WithPrefix()}, {clientv3.WithFromKey()}, {clientv3.WithPrefix(), clientv3.WithLimit(2)},
			{clientv3.WithPrefix(), clientv3.WithCountOnly()}, clientv3.WithFirstCreate(), clientv3.WithLastCreate(),
			{clientv3.WithPrefix(), clientv3.WithRev(base + int64(rng.IntN(20)))},
			append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(base+int64(rng.IntN(100)))),
		}
		resp, err := c.Get(ctx, []string{"/k/", key()}[rng.IntN(2)], opts[rng.IntN(len(opts))]...)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(described(base, resp.Header.Revision, resp.Kvs), resp.Count, resp.More)
	}
	compared, order := key(), []string{"=", "<", ">", "!="}[rng.IntN(4)]
	n := rng.IntN(40)
	cmps := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(compared), order, base+int64(n)), clientv3.Compare(clientv3.CreateRevision(compared), order, 0),
		clientv3.Compare(clientv3.Version(compared), order, n%4), clientv3.Compare(clientv3.Value(compared), order, fmt.Sprint(n)),
	}
	ops := func() (out []clientv3.Op) {
		for _, i := range rng.Perm(5)[:rng.IntN(4)] {
			name := fmt.Sprintf("/k/%d", i)
			out = append(out, []clientv3.Op{clientv3.OpPut(name, fmt.Sprint(n)), clientv3.OpDelete(name), clientv3.OpGet(name)}[rng.IntN(3)])
		}
		return out
	}
	resp, err := c.Txn(ctx).If(cmps[rng.IntN(len(cmps))]).Then(ops()...).Else(ops()...).Commit()
	if err != nil {
		return err.Error()
	}
	out := []string{fmt.Sprint(resp.Succeeded, resp.Header.Revision-base)}
	for _, r := range resp.Responses {
		if got := r.GetResponseRange(); got != nil {
			out = append(out, described(base, 0, got.Kvs))
		}
	}
	return strings.Join(out, "; ")
}

// TestLikeEtcd does the same random operations on etcd and on the model.
func TestLikeEtcd(t *testing.T) {
	etcd, err := embedded.StartEtcd(t.Context(), embedded.Config{
		NoSync: true,
		Dir:    t.TempDir(), Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	seed := testrun.Seed(t)
	clients := []*clientv3.Client{etcd.Client(), New().Client(nil)}
	var answers [2][]string
	for i, c := range clients {
		first, err := c.Get(t.Context(), "/k/")
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 2000 {
			answers[i] = append(answers[i], step(t.Context(), c, first.Header.Revision, rng))
		}
	}
	for i, want := range answers[0] {
		if answers[1][i] != want {
			t.Fatalf("operation %d: the model answers\n%s\netcd\n%s", i, answers[1][i], want)
		}
	}
}

// TestLeases: a key lives as long as its lease is kept alive, and watches report its
// end.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := New()
		c := server.Client(nil)
		ctx, cancel := context.WithCancel(t.Context())
		grant, err := c.Grant(ctx, 3)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Put(ctx, "/a", "1", clientv3.WithLease(grant.ID)); err != nil {
			t.Fatal(err)
		}
		events := c.Watch(t.Context(), "/a", clientv3.WithRev(2))
		beats, err := c.KeepAlive(ctx, grant.ID)
		if err != nil {
			t.Fatal(err)
		}
		count := func() int64 {
			resp, err := c.Get(t.Context(), "/a", clientv3.WithCountOnly())
			if err != nil {
				t.Fatal(err)
			}
			return resp.Count
		}
		time.Sleep(time.Minute)
		if count() != 1 {
			t.Error("a key whose lease is kept alive is gone")
		}
		cancel()
		for range beats {
		}
		time.Sleep(4 * time.Second)
		if count() != 0 {
			t.Error("a key outlives its lease")
		}
		var seen []mvccpb.Event_EventType
		for len(seen) < 2 {
			for _, e := range (<-events).Events {
				seen = append(seen, e.Type)
			}
		}
		if !slices.Equal(seen, []mvccpb.Event_EventType{mvccpb.PUT, mvccpb.DELETE}) {
			t.Errorf("watch told %v", seen)
		}
		if _, err := c.KeepAlive(t.Context(), grant.ID); err == nil {
			t.Error("a lease that has ended is kept alive")
		}
		if server.Expire("/a") {
			t.Error("a lease ended twice")
		}
	})
}
