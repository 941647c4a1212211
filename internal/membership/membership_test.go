package membership_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// shared is the etcd of all tests that do not stop it; each has its own prefix.
var shared *embedded.Etcd

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "membership")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if shared, err = embedded.StartEtcd(context.Background(), etcdConfig(dir)); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := shared.Close(); err != nil {
		panic(err)
	}
	if err := goleak.Find(); err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

func etcdConfig(dir string) embedded.Config {
	return embedded.Config{
		NoSync: true,
		Dir:    dir, Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Logger: quiet(),
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func prefix(t *testing.T) string { return "/" + t.Name() + "/" }

func follow(t *testing.T, client *clientv3.Client) *membership.Members {
	t.Helper()
	m := membership.NewMembers(t.Context(), client, prefix(t), quiet())
	t.Cleanup(m.Close)
	return m
}

func register(t *testing.T, client *clientv3.Client, id string) *membership.Registration {
	t.Helper()
	searcher := &catalogv1.Searcher{Id: id, Address: id + ":1"}
	return registered(t, client, searcher, time.Second)
}

func registered(t *testing.T, client *clientv3.Client, searcher *catalogv1.Searcher, ttl time.Duration) *membership.Registration {
	t.Helper()
	r := membership.Register(t.Context(), client, prefix(t), searcher, ttl, quiet())
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// names are the ids in a snapshot, a draining one with a minus sign.
func names(s *membership.MemberSnapshot) string {
	var ids []string
	for _, m := range s.Searchers {
		id := m.Id
		if m.Draining {
			id = "-" + id
		}
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}

// waitMembers waits until the members are those of want.
func waitMembers(t *testing.T, m *membership.Members, want string) {
	t.Helper()
	end := time.After(time.Minute)
	for {
		s := m.Snapshot()
		if names(s) == want {
			return
		}
		select {
		case <-s.Changed():
		case <-end:
			t.Fatalf("members are %q, want %q", names(s), want)
		}
	}
}

func TestMembersComeAndGo(t *testing.T) {
	m := follow(t, shared.Client())
	if s, err := m.WaitListed(t.Context()); err != nil || len(s.Searchers) != 0 {
		t.Fatalf("%v, %v", s, err)
	}
	b := register(t, shared.Client(), "b")
	waitMembers(t, m, "b")
	register(t, shared.Client(), "a")
	waitMembers(t, m, "a b")
	late := follow(t, shared.Client())
	waitMembers(t, late, "a b")
	if err := b.SetDraining(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	waitMembers(t, m, "a -b")
	if placeable := m.Snapshot().Placeable(); !slices.Equal(placeable, []membership.Member{{ID: "a"}}) {
		t.Errorf("placeable: %q", placeable)
	}
	if err := b.SetDraining(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	waitMembers(t, m, "a b")
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitMembers(t, m, "a")
	if b.Registered() {
		t.Error("registered after the end")
	}
	if err := b.SetDraining(t.Context(), true); err == nil {
		t.Error("draining set after the end")
	}
}

// A searcher that dies cannot deregister: etcd removes it with its lease.
func TestExpiryRemoves(t *testing.T) {
	m := follow(t, shared.Client())
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{shared.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	r := register(t, client, "dies")
	register(t, shared.Client(), "lives")
	waitMembers(t, m, "dies lives")
	client.Close() // from here on nothing keeps the record alive, and nothing can change it
	waitMembers(t, m, "lives")
	testrun.Until(t, "it knows that it is not registered", func() bool { return !r.Registered() })
}

// leaseOf returns the lease of a searcher's record, 0 if there is none.
func leaseOf(t *testing.T, id string) clientv3.LeaseID {
	t.Helper()
	resp, err := shared.Client().Get(t.Context(), prefix(t)+"searchers/"+id)
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Kvs) == 0 {
		return 0
	}
	return clientv3.LeaseID(resp.Kvs[0].Lease)
}

func TestRegistersAgainAfterLoss(t *testing.T) {
	m := follow(t, shared.Client())
	r := register(t, shared.Client(), "a")
	waitMembers(t, m, "a")
	if err := r.SetDraining(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		lost := leaseOf(t, "a")
		if _, err := shared.Client().Revoke(t.Context(), lost); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) { // it may have expired
			t.Fatal(err)
		}
		testrun.Until(t, "another lease", func() bool { now := leaseOf(t, "a"); return now != 0 && now != lost })
		waitMembers(t, follow(t, shared.Client()), "-a") // its last wish is not lost
	}
	waitMembers(t, m, "-a")
}

// TestReplacedWhileItRuns: a process that still runs when its replacement has
// registered under the same name neither drains the replacement nor removes its
// record. It gets the name back only when the other is gone.
func TestReplacedWhileItRuns(t *testing.T) {
	m := follow(t, shared.Client())
	start := func(address string, at int64) *membership.Registration {
		record := &catalogv1.Searcher{Id: "a", Address: address, StartedAt: &timestamppb.Timestamp{Seconds: at}}
		return registered(t, shared.Client(), record, time.Minute) // no stall of the machine ends it
	}
	is := func(address string, draining bool) {
		t.Helper()
		for end := time.After(time.Minute); ; {
			s := m.Snapshot()
			if len(s.Searchers) == 1 && s.Searchers[0].Address == address && s.Searchers[0].Draining == draining {
				return
			}
			select {
			case <-s.Changed():
			case <-end:
				t.Fatalf("members are %v, want one at %s", s.Searchers, address)
			}
		}
	}
	older := start("old:1", 1)
	is("old:1", false)
	newer := start("new:1", 2)
	is("new:1", false)
	lease := leaseOf(t, "a")
	if err := older.SetDraining(t.Context(), true); err != nil {
		t.Error(err)
	}
	if err := older.Close(t.Context()); err != nil {
		t.Error(err)
	}
	late := start("old:1", 1)
	if err := late.SetDraining(t.Context(), true); err != nil { // it knows that it was replaced
		t.Error(err)
	}
	if late.Registered() || leaseOf(t, "a") != lease {
		t.Errorf("the newer one is no longer registered as it was: the older one is: %t; lease %x, was %x", late.Registered(), leaseOf(t, "a"), lease)
	}
	if err := newer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	is("old:1", true)
}

func TestSurvivesRestartOfEtcd(t *testing.T) {
	dir := t.TempDir()
	etcd, err := embedded.StartEtcd(t.Context(), etcdConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{etcd.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	m := membership.NewMembers(t.Context(), client, catalog.DefaultPrefix, quiet())
	defer m.Close()
	searcher := &catalogv1.Searcher{Id: "a"}
	r := membership.Register(t.Context(), client, catalog.DefaultPrefix, searcher, time.Minute, quiet())
	waitMembers(t, m, "a")
	if err := etcd.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	if err := r.SetDraining(ctx, true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("draining stored without etcd: %v", err)
	}
	cancel()
	if names(m.Snapshot()) != "a" {
		t.Error("members forgotten while etcd is away")
	}
	if etcd, err = embedded.StartEtcd(t.Context(), etcdConfig(dir)); err != nil {
		t.Fatal(err)
	}
	// The pending change is made now.
	waitMembers(t, m, "-a")
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	waitMembers(t, m, "")
	m.Close()
	if err := etcd.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	// The connection, and what renews leases, are the client's: its first use starts them.
	lease, err := shared.Client().Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := shared.Client().KeepAlive(t.Context(), lease.ID)
	if err != nil {
		t.Fatal(err)
	}
	<-kept
	others := goleak.IgnoreCurrent()
	defer func() {
		// The client ends its stream to etcd in a goroutine of its own, once etcd has answered.
		err := goleak.Find(others)
		for attempt := 0; err != nil && attempt < 100; attempt++ {
			err = goleak.Find(others) // waits half a second
		}
		if err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	m := membership.NewMembers(ctx, shared.Client(), prefix(t), quiet())
	r := membership.Register(ctx, shared.Client(), prefix(t), &catalogv1.Searcher{Id: "a"}, time.Second, quiet())
	waitMembers(t, m, "a")
	// A change comes by the watch, which is there then. etcd's client keeps the stream of a watch whose context ends before.
	if err := r.SetDraining(ctx, true); err != nil {
		t.Error(err)
	}
	waitMembers(t, m, "-a")
	cancel()
	m.Close()
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	resp, err := shared.Client().Get(t.Context(), prefix(t), clientv3.WithPrefix())
	if err != nil || len(resp.Kvs) != 0 {
		t.Errorf("record left behind: %v, %v", resp.Kvs, err)
	}
	never, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.WaitListed(never); err != nil {
		t.Errorf("the list that is there: %v", err)
	}
}

func TestBrokenRecordIsLeftOut(t *testing.T) {
	if _, err := shared.Client().Put(t.Context(), prefix(t)+"searchers/broken", "\xff"); err != nil {
		t.Fatal(err)
	}
	register(t, shared.Client(), "whole")
	waitMembers(t, follow(t, shared.Client()), "whole")
}

// TestCannotRead asks which searchers would not read shards of a later version of the format.
func TestCannotRead(t *testing.T) {
	const later = format.Version + 1
	s := membership.MemberSnapshot{Searchers: []*catalogv1.Searcher{
		{Id: "a", ShardFormats: membership.ShardFormats()}, {Id: "b", ShardFormats: []uint32{format.Version, later}}, {Id: "c", Draining: true},
	}}
	for version, want := range map[uint32][]string{format.Version: {"c"}, later: {"a", "c"}} {
		var got []string
		for _, m := range s.CannotRead(version) {
			got = append(got, m.GetId())
		}
		if !slices.Equal(got, want) {
			t.Errorf("version %d is unreadable for %v, want %v", version, got, want)
		}
	}
}
