package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

func newView(t *testing.T, s *catalog.Store) *catalog.View {
	t.Helper()
	v := catalog.NewView(t.Context(), s, quiet())
	t.Cleanup(v.Close)
	return v
}

// sameAsStore compares a snapshot with what the store lists.
func sameAsStore(t *testing.T, s *catalog.Store, snapshot *catalog.Snapshot) {
	t.Helper()
	names := []string{}
	for root, err := range s.ListRoots(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, root.Record.Repo)
		_, want, _ := catalog.ChunksOf(slices.Values([]*catalogv1.Root{root.Record}))[0].Find(root.Record.Repo)
		if got, ok := snapshot.Root(root.Record.Repo); !ok || !proto.Equal(got, want.Root()) {
			t.Errorf("the view has %v, the store %v", got, root.Record)
		}
	}
	if got := namesIn(snapshot); !slices.Equal(got, names) {
		t.Errorf("the view has %v, the store %v", got, names)
	}
}

func namesIn(snapshot *catalog.Snapshot) (names []string) {
	for _, c := range snapshot.Chunks() {
		for _, r := range c.All() {
			names = append(names, r.Repo)
		}
	}
	return names
}

func current(t *testing.T, v *catalog.View) *catalog.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	snapshot, err := v.Current(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func TestViewFollows(t *testing.T) {
	s := newStore(t)
	v := newView(t, s)
	if snapshot := current(t, v); len(namesIn(snapshot)) != 0 || snapshot.Revision == 0 {
		t.Errorf("empty catalog: %d roots at %d", len(namesIn(snapshot)), snapshot.Revision)
	}
	for i, repo := range []string{"b", "a", "c", "a"} {
		putDesired(t, s, repo)
		revision := publish(t, s, repo)
		snapshot, err := v.WaitFor(t.Context(), revision)
		if err != nil {
			t.Fatal(err)
		}
		root, ok := snapshot.Root(repo)
		if !ok || root.Generation != uint64(1+i/3) {
			t.Errorf("after revision %d: %v, %v", revision, root, ok)
		}
		sameAsStore(t, s, snapshot)
	}
	revision, err := s.DeleteRepo(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := v.WaitFor(t.Context(), revision)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := snapshot.Root("b"); ok {
		t.Error("a deleted repo is still in the view")
	}
	sameAsStore(t, s, snapshot)
}

// TestShardView: it has the shards of a view, and nothing else of the roots.
func TestShardView(t *testing.T) {
	s := newStore(t)
	all, bare := newView(t, s), catalog.NewShardView(t.Context(), s, quiet())
	t.Cleanup(bare.Close)
	shards := func(snapshot *catalog.Snapshot) (names []string) {
		for _, c := range snapshot.Chunks() {
			for _, shard := range c.Shards() {
				names = append(names, fmt.Sprint(shard.Value()))
			}
		}
		return names
	}
	for i := range 12 {
		repo := string(rune('a' + i%5))
		putDesired(t, s, repo)
		lease := acquire(t, s, repo)
		next := nextRoot(lease)
		next.Branches, next.Url = []*catalogv1.Branch{{Name: "main", Commit: "abcd"}}, "https://example.org/"+repo
		next.Shards[0].Languages, next.Shards[0].Hidden, next.Shards[0].SizeBytes = []string{"Go"}, []byte("hidden"), 17
		if _, err := s.Publish(t.Context(), lease, lease.Root(), next); err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i%4 == 3 {
			if _, err := s.DeleteRepo(t.Context(), repo); err != nil {
				t.Fatal(err)
			}
		}
		full, kept := current(t, all), current(t, bare)
		if want, got := shards(full), shards(kept); !slices.Equal(got, want) || len(got) == 0 && i < 3 {
			t.Fatalf("it has the shards %v, not %v", got, want)
		}
		if root, ok := kept.Root(repo); ok && (root.Url != "" || len(root.Branches) > 0 || len(root.Shards[0].Languages) > 0 || len(root.Shards[0].Hidden) > 0) {
			t.Fatalf("it keeps %v", root)
		}
	}
}

func TestSnapshotsDoNotChange(t *testing.T) {
	s := newStore(t)
	v := newView(t, s)
	putDesired(t, s, "repo")
	revision := publish(t, s, "repo")
	old, err := v.WaitFor(t.Context(), revision)
	if err != nil {
		t.Fatal(err)
	}
	next := publish(t, s, "repo")
	<-old.Changed()
	if _, err := v.WaitFor(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if root, _ := old.Root("repo"); root.Generation != 1 {
		t.Error("an old snapshot changed")
	}
}

func TestWaitForEndsWithItsContext(t *testing.T) {
	v := newView(t, newStore(t))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := v.WaitFor(ctx, 1<<60); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Writers acknowledge changes while readers ask for the current state: no reader
// may miss what was acknowledged before it asked.
func TestCurrentIsLinearizable(t *testing.T) {
	s := newStore(t)
	const writers, readers, rounds = 3, 6, 25
	views := []*catalog.View{newView(t, s), newView(t, s)}
	var acknowledged [writers]atomic.Uint64 // generation of each writer's repo; 0 after a delete
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	for w := range writers {
		repo := fmt.Sprintf("repo%d", w)
		writing.Go(func() {
			for range rounds {
				putDesired(t, s, repo)
				lease := acquire(t, s, repo)
				next := nextRoot(lease)
				if _, err := s.Publish(t.Context(), lease, lease.Root(), next); err != nil {
					t.Error(err)
				}
				_ = lease.Release(t.Context())
				acknowledged[w].Store(next.Generation)
			}
		})
	}
	rng := testrun.Rand(t)
	for r := range readers {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				w := rng.IntN(writers)
				known := acknowledged[w].Load()
				snapshot := current(t, views[r%len(views)])
				root, _ := snapshot.Root(fmt.Sprintf("repo%d", w))
				if root.GetGeneration() < known {
					t.Errorf("generation %d was acknowledged, read %d", known, root.GetGeneration())
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
}

// The view is cut off while repos change and etcd forgets the history: it must
// list anew, and lose what was deleted meanwhile.
func TestViewCatchesUpAfterCompaction(t *testing.T) {
	s := newStore(t)
	for _, repo := range []string{"stays", "changes", "goes"} {
		putDesired(t, s, repo)
		publish(t, s, repo)
	}
	g := newGate(t, shared.Endpoint())
	v := newView(t, catalog.New(connect(t, g.endpoint()), "/"+t.Name()+"/"))
	before := current(t, v)
	g.shut()
	publish(t, s, "changes")
	putDesired(t, s, "comes")
	publish(t, s, "comes")
	revision, err := s.DeleteRepo(t.Context(), "goes")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Client().Compact(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	if now := v.Snapshot(); now.Revision != before.Revision || len(namesIn(now)) != 3 {
		t.Errorf("a view that is cut off must keep what it has: %v", namesIn(now))
	}
	g.open(t)
	snapshot := current(t, v)
	sameAsStore(t, s, snapshot)
	if _, ok := snapshot.Root("goes"); ok {
		t.Error("a repo that was deleted while the view was away is still there")
	}
	// And it follows on from there.
	again := publish(t, s, "stays")
	if snapshot, err = v.WaitFor(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	sameAsStore(t, s, snapshot)
}

func TestViewCatchesUpAfterRestart(t *testing.T) {
	dir := t.TempDir()
	etcd, err := embedded.StartEtcd(t.Context(), etcdConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	endpoint := etcd.Endpoint()
	s := catalog.New(connect(t, endpoint), "")
	v := newView(t, s)
	putDesired(t, s, "repo")
	publish(t, s, "repo")
	if n := len(namesIn(current(t, v))); n != 1 {
		t.Fatalf("%d roots", n)
	}
	for range 2 {
		if err := etcd.Close(); err != nil {
			t.Fatal(err)
		}
		if n := len(namesIn(v.Snapshot())); n != 1 {
			t.Errorf("%d roots while etcd is away, want the 1 there was", n)
		}
		if etcd, err = embedded.StartEtcd(t.Context(), etcdConfig(dir)); err != nil {
			t.Fatal(err)
		}
		revision := publish(t, s, "repo")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		snapshot, err := v.WaitFor(ctx, revision)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		sameAsStore(t, s, snapshot)
	}
	v.Close()
	if err := etcd.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestViewStartsBeforeEtcd(t *testing.T) {
	s := newStore(t)
	putDesired(t, s, "repo")
	publish(t, s, "repo")
	g := newGate(t, shared.Endpoint())
	g.shut()
	v := newView(t, catalog.New(connect(t, g.endpoint()), "/"+t.Name()+"/"))
	if v.Snapshot().Revision != 0 {
		t.Error("snapshot before etcd was reached")
	}
	g.open(t)
	sameAsStore(t, s, current(t, v))
}

func TestWithinAsksOnlyWhenNeeded(t *testing.T) {
	g := newGate(t, shared.Endpoint())
	v := newView(t, catalog.New(connect(t, g.endpoint()), "/"+t.Name()+"/"))
	if _, err := v.Within(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	g.shut()
	if _, err := v.Within(t.Context(), time.Hour); err != nil {
		t.Errorf("asked etcd although the view was current within the hour: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := v.Within(ctx, 0); err == nil {
		t.Error("answered without etcd although nothing but now was allowed")
	}
	g.open(t)
}

// One root that cannot be decoded must not take the others away.
func TestBrokenRootIsLeftOut(t *testing.T) {
	s := newStore(t)
	for key, value := range map[string]string{"roots/broken": "\xff", "roots/misplaced": "\x0a\x01x"} {
		if _, err := shared.Client().Put(t.Context(), "/"+t.Name()+"/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	putDesired(t, s, "whole")
	publish(t, s, "whole")
	roots := namesIn(current(t, newView(t, s)))
	if len(roots) != 1 || roots[0] != "whole" {
		t.Errorf("roots: %v", roots)
	}
}

func TestListRootsNamesTheBrokenOne(t *testing.T) {
	s := newStore(t)
	if _, err := shared.Client().Put(t.Context(), "/"+t.Name()+"/roots/broken", "\xff"); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.ListRoots(t.Context()) {
		if err == nil {
			t.Error("listed a record that cannot be decoded")
		}
	}
	if _, err := s.GetRoot(t.Context(), "broken"); err == nil || errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("read a record that cannot be decoded: %v", err)
	}
}
