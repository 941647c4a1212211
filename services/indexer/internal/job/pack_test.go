package job

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// crowd is some small new repos whose jobs run at the same time.
type crowd struct {
	*env
	prefix string // in etcd
	names  []string
	ended  atomic.Int64
}

// newCrowd makes the repos of dirs desired. Packs wait until all jobs have joined one or ended.
func newCrowd(t *testing.T, e *env, round int, dirs []string, steps func(string)) *crowd {
	t.Helper()
	c := &crowd{env: e, prefix: fmt.Sprintf("/%s/%d/", t.Name(), round)}
	e.Store = catalog.New(etcdClient(t, steps), c.prefix)
	for i, dir := range dirs {
		name := fmt.Sprintf("example.com/org/r%02d", i)
		c.names = append(c.names, name)
		c.wantWith(&catalogv1.Desired{Name: name, Url: dir})
	}
	e.Waiting = func(context.Context) bool {
		c.packs.mu.Lock()
		defer c.packs.mu.Unlock()
		return c.packs.open != nil && c.packs.open.users+int(c.ended.Load()) < len(c.names)
	}
	return c
}

// handle does the jobs of all repos at the same time, and returns their errors.
func (c *crowd) handle(ctx context.Context) []error {
	errs := make([]error, len(c.names))
	var running sync.WaitGroup
	for i, name := range c.names {
		running.Go(func() {
			defer c.ended.Add(1)
			errs[i] = c.Handle(ctx, &queue.Delivery{Job: queue.Job{Repo: name, Epoch: 1}, NumDelivered: 1})
		})
	}
	running.Wait()
	return errs
}

func (c *crowd) roots() map[string]*catalogv1.Root {
	c.t.Helper()
	roots := map[string]*catalogv1.Root{}
	for root, err := range catalog.New(servers.Client(), c.prefix).ListRoots(c.t.Context()) {
		if err != nil {
			c.t.Fatal(err)
		}
		roots[root.Record.GetRepo()] = root.Record
	}
	return roots
}

// check fails unless each repo but the deleted is published once, with its own content, in shards that are stored and
// whose packs are known.
func (c *crowd) check(deleted string) {
	c.t.Helper()
	store, roots := catalog.New(servers.Client(), c.prefix), c.roots()
	reach, err := store.Reach(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	packs := map[string][]string{}
	for pack, err := range store.ListPacks(c.t.Context()) {
		if err != nil {
			c.t.Fatal(err)
		}
		packs[pack.Record.GetKey()] = pack.Record.GetRepos()
	}
	for i, name := range c.names {
		root := roots[name]
		if name == deleted {
			if root != nil {
				c.t.Errorf("%s is served although it was deleted", name)
			}
			continue
		}
		if root.GetGeneration() != 1 || len(root.GetShards()) != 1 || reach.Garbage(root.GetManifestKey()) || reach.Garbage(root.GetShards()[0].GetKey()) {
			c.t.Errorf("%s: root %v", name, root)
			continue
		}
		ref := root.GetShards()[0]
		if ref.GetRepos() > 1 && !slices.Contains(packs[ref.GetKey()], name) {
			c.t.Errorf("%s is not in the record of its pack %v", name, packs[ref.GetKey()])
		}
		want := []string{fmt.Sprintf("f%d@main", i), "same@main"}
		if found := c.found(root, "repo:"+name+" needle"); !slices.Equal(found, want) || ref.GetLiveDocuments() != 2 {
			c.t.Errorf("%s has %v of %d documents, want %v", name, found, ref.GetLiveDocuments(), want)
		}
	}
}

// smallDirs makes repositories with a file of their own and one that all have.
func smallDirs(t *testing.T, n int) (dirs []string) {
	for i := range n {
		r := gitsourcetest.New(t)
		r.Files("main", fmt.Sprintf("f%d", i), fmt.Sprintf("needle %d", i), "same", "needle of all")
		dirs = append(dirs, r.Dir)
	}
	return dirs
}

// newPackEnv makes a worker for repositories in any temporary folder of the test.
func newPackEnv(t *testing.T, dirs []string) *env {
	return newEnv(t, filepath.Dir(filepath.Dir(dirs[0])), nil)
}

func TestPack(t *testing.T) {
	dirs := smallDirs(t, 8)
	e := newPackEnv(t, dirs)
	c := newCrowd(t, e, 0, dirs, nil)
	for i, err := range c.handle(t.Context()) {
		if err != nil {
			t.Errorf("%s: %v", c.names[i], err)
		}
	}
	c.check("")
	if shards := e.bucket.keys("shards/"); len(shards) != 1 {
		t.Errorf("shards %v, want one", shards)
	}
	for name, root := range c.roots() {
		if ref := root.GetShards()[0]; ref.GetRepos() != 8 || ref.GetDocuments() != 16 || ref.GetContentBytes() != 8*8+13 || ref.GetLiveContentBytes() != 8+13 {
			t.Errorf("%s: shard %v", name, ref)
		}
	}
	leases, err := servers.Client().Get(t.Context(), c.prefix+"claims/", clientv3.WithPrefix())
	if err != nil || len(leases.Kvs) > 0 {
		t.Errorf("claims %v, %v", leases, err)
	}
	e.pushTo(c, 3)
}

// pushTo indexes a push to a repo that shares a shard: a delta hides what it replaces there and nowhere else.
func (e *env) pushTo(c *crowd, i int) {
	e.t.Helper()
	r := gitsourcetest.New(e.t)
	r.Files("main", fmt.Sprintf("f%d", i), fmt.Sprintf("needle %d, pushed", i), "same", "needle of all", "more", "1", "most", "2", "much", "3", "many", "4")
	d := e.wantWith(&catalogv1.Desired{Name: c.names[i], Url: r.Dir})
	if err := e.Handle(e.t.Context(), d); err != nil {
		e.t.Fatal(err)
	}
	roots := c.roots()
	if found := e.found(roots[c.names[i]], "repo:"+c.names[i]+" pushed"); len(found) != 1 || roots[c.names[i]].GetGeneration() != 2 {
		e.t.Errorf("after a push found %v of %v", found, roots[c.names[i]])
	}
	if found := e.found(roots[c.names[i+1]], "repo:"+c.names[i+1]+" needle"); len(found) != 2 {
		e.t.Errorf("after a push to another repo found %v", found)
	}
}

// faults are what happens to one of the repos, or to all, at some step.
var faults = map[string]func(c *crowd, repo string, stop context.CancelFunc) error{
	"nothing": func(*crowd, string, context.CancelFunc) error { return nil },
	"a lease is lost": func(c *crowd, repo string, _ context.CancelFunc) error {
		_, err := servers.Client().Delete(context.Background(), c.prefix+"leases/"+repo)
		return err
	},
	"the claim is lost": func(c *crowd, _ string, _ context.CancelFunc) error {
		_, err := servers.Client().Delete(context.Background(), c.prefix+"claims/", clientv3.WithPrefix())
		return err
	},
	"a repo is deleted": func(c *crowd, repo string, _ context.CancelFunc) error {
		_, err := catalog.New(servers.Client(), c.prefix).DeleteRepo(context.Background(), repo)
		return err
	},
	"the bucket fails": func(c *crowd, _ string, _ context.CancelFunc) error {
		c.bucket.mu.Lock()
		defer c.bucket.mu.Unlock()
		c.bucket.fail = &bucket.Error{Err: fmt.Errorf("away")}
		return nil
	},
	"the indexer stops": func(_ *crowd, _ string, stop context.CancelFunc) error { stop(); return nil },
}

// TestPackFaults: whatever fails at whatever step while repos are packed, each is published once with the right content,
// by its first job or by a later one.
func TestPackFaults(t *testing.T) {
	dirs := smallDirs(t, 5)
	e := newPackEnv(t, dirs)
	rng := testrun.Rand(t)
	for round := range testrun.Rounds(30, 600) {
		names := slices.Sorted(maps.Keys(faults))
		fault, at := names[round%len(names)], int64(1+rng.IntN(150)) // of about 100
		e.packFault(round, dirs, fault, at, rng)
		if t.Failed() {
			t.Fatalf("round %d: at step %d %s", round, at, fault)
		}
	}
}

func (e *env) packFault(round int, dirs []string, fault string, at int64, rng *rand.Rand) {
	e.t.Helper()
	ctx, stop := context.WithCancel(e.t.Context())
	defer stop()
	var step atomic.Int64
	var c *crowd
	victim, deleted := rng.IntN(len(dirs)), ""
	steps := func(string) {
		if c == nil || step.Add(1) != at {
			return
		}
		if err := faults[fault](c, c.names[victim], stop); err != nil {
			e.t.Error(err)
		}
	}
	made := newCrowd(e.t, e, round, dirs, steps)
	e.bucket.steps, c = steps, made
	errs := c.handle(ctx)
	e.bucket.steps, e.bucket.fail = nil, nil
	if fault == "a repo is deleted" && step.Load() >= at {
		deleted = c.names[victim]
	}
	e.Waiting = func(context.Context) bool { return false }
	for i, err := range errs {
		if queue.IsPermanent(err) {
			e.t.Errorf("%s is given up: %v", c.names[i], err)
		}
		if err == nil {
			continue
		}
		if err := e.Handle(e.t.Context(), &queue.Delivery{Job: queue.Job{Repo: c.names[i], Epoch: 1}, NumDelivered: 2}); err != nil {
			e.t.Errorf("%s, after %v: %v", c.names[i], errs[i], err)
		}
	}
	c.check(deleted)
}

// TestBadReposLeaveThePack: repos that cannot be fetched and repos that are not small go their own way.
func TestBadReposLeaveThePack(t *testing.T) {
	dirs := smallDirs(t, 4)
	large := gitsourcetest.New(t)
	large.Files("main", "f1", "needle "+strings.Repeat("large ", smallRepo/6), "same", "needle of all")
	dirs[1], dirs[2] = large.Dir, dirs[2]+"-gone"
	e := newPackEnv(t, dirs)
	c := newCrowd(t, e, 0, dirs, nil)
	errs := c.handle(t.Context())
	if errs[2] == nil || errs[0] != nil || errs[1] != nil || errs[3] != nil {
		t.Errorf("errors %v", errs)
	}
	roots := c.roots()
	for name, repos := range map[string]uint32{c.names[0]: 2, c.names[1]: 1, c.names[3]: 2} {
		if ref := roots[name].GetShards()[0]; ref.GetRepos() != repos || len(c.found(roots[name], "repo:"+name+" needle")) != 2 {
			t.Errorf("%s: shard %v", name, ref)
		}
	}
}

// TestPackThatCannotBeBuilt: the next attempt at each repo is alone.
func TestPackThatCannotBeBuilt(t *testing.T) {
	dirs := smallDirs(t, 3)
	e := newPackEnv(t, dirs)
	c := newCrowd(t, e, 0, dirs, nil)
	e.bucket.hold = func(context.Context, string) { panic("a defect") }
	for _, err := range c.handle(t.Context()) {
		if err == nil || queue.IsPermanent(err) {
			t.Errorf("built: %v", err)
		}
	}
	e.bucket.hold, c.ended = nil, atomic.Int64{}
	e.Waiting = func(context.Context) bool { return false }
	for _, name := range c.names {
		if status, err := e.Store.GetStatus(t.Context(), name); err != nil || !status.Record.GetAlone() {
			t.Errorf("%s: %v, %v", name, status.Record, err)
		}
	}
	c.handle(t.Context())
	c.check("")
	if shards := e.bucket.keys("shards/"); len(shards) != 3 {
		t.Errorf("shards %v", shards)
	}
}

// TestFewShards: small new repos that wait in the queue make few shards, whatever the number of workers.
func TestFewShards(t *testing.T) {
	dirs := smallDirs(t, 4)
	e := newPackEnv(t, dirs)
	var err error
	if e.Queue, err = queue.New(servers.Conn(), queue.Config{Prefix: "few"}); err != nil {
		t.Fatal(err)
	}
	e.Waiting = func(ctx context.Context) bool {
		depth, err := e.Queue.Depth(ctx)
		return err == nil && depth.Jobs > depth.Delivered
	}
	const repos = 100
	for i := range repos {
		d := e.wantWith(&catalogv1.Desired{Name: fmt.Sprintf("example.com/org/r%03d", i), Url: dirs[i%len(dirs)]})
		if err := e.Queue.Publish(t.Context(), d.Job); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	start := time.Now()
	var running sync.WaitGroup
	running.Go(func() { _ = e.Queue.Consume(ctx, 2, e.Handle) })
	published := func() (n int) {
		for _, err := range e.Store.ListRoots(t.Context()) {
			if err == nil {
				n++
			}
		}
		return n
	}
	testrun.Until(t, "all are published", func() bool { time.Sleep(50 * time.Millisecond); return published() == repos })
	cancel()
	running.Wait()
	aged := int(time.Since(start) / packWait) // packs that may have been closed before all had joined
	if shards := e.bucket.keys("shards/"); len(shards) > repos/10+aged {
		t.Errorf("%d repos made %d shards", repos, len(shards))
	} else {
		t.Logf("%d repos made %d shards", repos, len(shards))
	}
}
