package catalog_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// rootWith is a root with a manifest and shards of given keys.
func rootWith(lease *catalog.Lease, manifest string, shards ...string) *catalogv1.Root {
	root := nextRoot(lease)
	root.ManifestKey, root.Shards = manifest, nil
	for i, key := range shards {
		root.Shards = append(root.Shards, &catalogv1.ShardRef{Digest: []byte{byte(i)}, Key: key})
	}
	return root
}

func reach(t *testing.T, s *catalog.Store) *catalog.Reach {
	t.Helper()
	r, err := s.Reach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestObjectsOfOthersAreRefused: a root may name what its own job made and what
// the root that it replaces names.
func TestObjectsOfOthersAreRefused(t *testing.T) {
	s := newStore(t)
	putDesired(t, s, "repo")
	dead := acquire(t, s, "repo")
	orphan := catalog.ShardKey(dead.Fence(), [32]byte{1})
	release(t, dead)

	lease := acquire(t, s, "repo")
	own, manifest := catalog.ShardKey(lease.Fence(), [32]byte{1}), catalog.ManifestKey(lease.Fence(), "repo", 1, [32]byte{2})
	if own == orphan {
		t.Fatal("two jobs share an object")
	}
	for name, next := range map[string]*catalogv1.Root{
		"shard of a job that died": rootWith(lease, manifest, own, orphan),
		"shard without a fence":    rootWith(lease, manifest, "shards/00ff.trawl"),
		"shard of no folder":       rootWith(lease, manifest, own[len("shards/"):]),
		"manifest of another job":  rootWith(lease, catalog.ManifestKey(dead.Fence(), "repo", 1, [32]byte{2}), own),
	} {
		if _, err := s.Publish(t.Context(), lease, nil, next); !errors.Is(err, catalog.ErrForeignObject) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := s.Publish(t.Context(), lease, nil, rootWith(lease, manifest, own)); err != nil {
		t.Fatal(err)
	}
	release(t, lease)
	later := acquire(t, s, "repo")
	more := catalog.ShardKey(later.Fence(), [32]byte{3})
	if _, err := s.Publish(t.Context(), later, later.Root(), rootWith(later, manifest, own, more)); err != nil {
		t.Errorf("objects of the root that is replaced: %v", err)
	}
}

// TestGarbage follows an object from its upload to the end of its root.
func TestGarbage(t *testing.T) {
	s := newStore(t)
	putDesired(t, s, "repo")
	lease := acquire(t, s, "repo")
	shard, manifest := catalog.ShardKey(lease.Fence(), [32]byte{1}), catalog.ManifestKey(lease.Fence(), "repo", 1, [32]byte{2})
	expect := func(when string, garbage bool) {
		t.Helper()
		r := reach(t, s)
		for _, key := range []string{shard, manifest} {
			if r.Garbage(key) != garbage {
				t.Errorf("%s: garbage is %v", when, !garbage)
			}
		}
	}
	expect("its job runs", false)
	if _, err := s.Publish(t.Context(), lease, nil, rootWith(lease, manifest, shard)); err != nil {
		t.Fatal(err)
	}
	release(t, lease)
	expect("it is served", false)
	publish(t, s, "repo")
	expect("another generation is served", true)

	r := reach(t, s)
	for _, key := range []string{"shards/00ff.trawl", "other/" + shard, "shards/x", catalog.ShardKey(r.Revision+1, [32]byte{1}), "shards/-0000000000000000.trawl"} {
		if r.Garbage(key) {
			t.Errorf("%s: garbage, though nothing is known of it", key)
		}
	}
	lease = acquire(t, s, "repo")
	shard, manifest = catalog.ShardKey(lease.Fence(), [32]byte{1}), catalog.ManifestKey(lease.Fence(), "repo", 2, [32]byte{2})
	if _, err := s.Publish(t.Context(), lease, lease.Root(), rootWith(lease, manifest, shard)); err != nil {
		t.Fatal(err)
	}
	expect("it is served again", false)
	if _, err := s.DeleteRepo(t.Context(), "repo"); err != nil {
		t.Fatal(err)
	}
	expect("the repo is deleted", true)
}

func TestCondemnedWaits(t *testing.T) {
	s := newStore(t)
	var objects []*catalogv1.CondemnedObject
	for i := range 1001 {
		objects = append(objects, &catalogv1.CondemnedObject{Key: catalog.ShardKey(1, [32]byte{byte(i), byte(i >> 8)}), SizeBytes: uint64(i)})
	}
	list := func() (batches []catalog.Condemned, held int) {
		for b, err := range s.ListCondemned(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			batches = append(batches, b)
			if b.Held {
				held++
			}
		}
		return batches, held
	}
	var batches []catalog.Condemned
	var held int
	for hold := time.Second; held < 2; hold *= 2 {
		if err := s.Condemn(t.Context(), reach(t, s), 0, objects, hold); err != nil {
			t.Fatal(err)
		}
		batches, held = list()
		if len(batches) != 2 || held < 2 && hold > time.Minute || len(batches[0].Record.Objects)+len(batches[1].Record.Objects) != 1001 {
			t.Fatalf("%d batches, %d held", len(batches), held)
		}
		if held < 2 { // a slow machine: writing and listing them took longer than the hold
			for _, b := range batches {
				if err := s.Settle(t.Context(), b, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	testrun.Until(t, "the holds end", func() bool {
		_, held := list()
		return held == 0
	})
	rest := batches[0].Record.Objects[:1]
	for range 2 { // the second time it is not the batch that was read any more
		if err := s.Settle(t.Context(), batches[0], rest); err != nil {
			t.Fatal(err)
		}
		rest = nil
	}
	if err := s.Settle(t.Context(), batches[1], nil); err != nil {
		t.Fatal(err)
	}
	left, _ := list()
	if len(left) != 1 || !slices.EqualFunc(left[0].Record.Objects, batches[0].Record.Objects[:1], func(a, b *catalogv1.CondemnedObject) bool { return proto.Equal(a, b) }) {
		t.Errorf("left %v", left)
	}
}

// TestSettledBatchesKeepTheirBounds: however often part of a batch is deleted, the rest stays, and what was
// garbage before it.
func TestSettledBatchesKeepTheirBounds(t *testing.T) {
	s, rng := newStore(t), testrun.Rand(t)
	want := &catalogv1.Condemned{After: 1 + rng.Int64N(1000)}
	for i := range 20 {
		want.Objects = append(want.Objects, &catalogv1.CondemnedObject{Key: catalog.ShardKey(1, [32]byte{byte(i)}), SizeBytes: uint64(i)})
	}
	testrun.Must(t, s.Condemn(t.Context(), reach(t, s), want.After, want.Objects, time.Minute))
	for {
		var batches []catalog.Condemned
		for b, err := range s.ListCondemned(t.Context()) {
			testrun.Must(t, err)
			batches = append(batches, b)
		}
		if len(want.Objects) == 0 {
			if len(batches) > 0 {
				t.Errorf("all is deleted, and %v is left", batches)
			}
			return
		}
		if len(batches) != 1 || !proto.Equal(batches[0].Record, want) {
			t.Fatalf("got %v, want %v", batches, want)
		}
		want.Objects = want.Objects[1+rng.IntN(len(want.Objects)):]
		testrun.Must(t, s.Settle(t.Context(), batches[0], want.Objects))
	}
}

func TestMemoriesOfDeletedReposGo(t *testing.T) {
	s := newStore(t)
	for _, repo := range []string{"gone", "again"} {
		putDesired(t, s, repo)
		publish(t, s, repo)
		if _, err := s.DeleteRepo(t.Context(), repo); err != nil {
			t.Fatal(err)
		}
	}
	putDesired(t, s, "again")
	for _, c := range []struct {
		before time.Time
		want   int
	}{{time.Now().Add(-time.Hour), 0}, {time.Now().Add(time.Hour), 1}} {
		if n, err := s.DropMemories(t.Context(), c.before); n != c.want || err != nil {
			t.Errorf("before %v: %d dropped, %v", c.before, n, err)
		}
	}
	if epoch := putDesired(t, s, "gone"); epoch != 1 {
		t.Errorf("epoch %d of a repo of which nothing is remembered", epoch)
	}
	if lease := acquire(t, s, "again"); lease.NextGeneration() != 2 || lease.Desired().Epoch != 2 {
		t.Errorf("a repo that is desired again forgot its generation: %d", lease.NextGeneration())
	}
}

// hooked calls before ahead of its first transaction.
type hooked struct {
	clientv3.KV

	before func()
}

func (k *hooked) Txn(ctx context.Context) clientv3.Txn {
	if before := k.before; before != nil {
		k.before = nil
		before()
	}
	return k.KV.Txn(ctx)
}

// TestNewMemoriesStay: a repo that is deleted anew while old memories are dropped is remembered.
func TestNewMemoriesStay(t *testing.T) {
	s := newStore(t)
	putDesired(t, s, "repo")
	publish(t, s, "repo")
	_, err := s.DeleteRepo(t.Context(), "repo")
	testrun.Must(t, err)
	client := connect(t, shared.Endpoint())
	client.KV = &hooked{KV: client.KV, before: func() {
		putDesired(t, s, "repo")
		_, err := s.DeleteRepo(t.Context(), "repo")
		testrun.Must(t, err)
	}}
	if n, err := catalog.New(client, "/"+t.Name()+"/").DropMemories(t.Context(), time.Now().Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("%d dropped, %v", n, err)
	}
	if epoch := putDesired(t, s, "repo"); epoch != 3 {
		t.Errorf("epoch %d of a repo that was deleted twice", epoch)
	}
}

// TestHoldsAreNotCutShort: garbage waits for whole seconds, and never less than it was to wait.
func TestHoldsAreNotCutShort(t *testing.T) {
	for hold, want := range map[time.Duration]int64{0: 1, time.Minute: 60, time.Minute + 1: 61, 90*time.Second - 1: 90, 90 * time.Second: 90} {
		t.Run(hold.String(), func(t *testing.T) {
			s := newStore(t)
			testrun.Must(t, s.Condemn(t.Context(), reach(t, s), 0, []*catalogv1.CondemnedObject{{Key: "a"}}, hold))
			got, err := shared.Client().Get(t.Context(), "/"+t.Name()+"/", clientv3.WithPrefix())
			testrun.Must(t, err)
			leases := 0
			for _, kv := range got.Kvs {
				if kv.Lease == 0 {
					continue
				}
				leases++
				ttl, err := shared.Client().TimeToLive(t.Context(), clientv3.LeaseID(kv.Lease))
				testrun.Must(t, err)
				if ttl.GrantedTTL != want && ttl.TTL >= 0 { // below 0 it has passed
					t.Errorf("a hold of %d s, want %d", ttl.GrantedTTL, want)
				}
			}
			if leases != 1 && hold > 0 {
				t.Errorf("%d leases", leases)
			}
		})
	}
}

// TestForgottenReposDoNotCount: a deleted repo counts for who put it until its memory is dropped.
func TestForgottenReposDoNotCount(t *testing.T) {
	s := newStore(t)
	_, _, err := s.PutDesiredIf(t.Context(), &catalogv1.Desired{Name: "repo"}, "token", func(*catalogv1.Desired) error { return nil })
	testrun.Must(t, err)
	_, err = s.DeleteRepo(t.Context(), "repo")
	testrun.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	puts := catalog.NewPuts(s, slog.New(slog.DiscardHandler))
	var running sync.WaitGroup
	running.Go(func() { puts.Run(ctx) })
	defer func() { cancel(); running.Wait() }()
	count := func() int {
		n, err := puts.Count(t.Context(), "token")
		testrun.Must(t, err)
		return n
	}
	if n := count(); n != 1 {
		t.Errorf("%d repos count", n)
	}
	_, err = s.DropMemories(t.Context(), time.Now().Add(time.Hour))
	testrun.Must(t, err)
	testrun.Until(t, "no repo counts", func() bool { return count() == 0 })
}
