package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/integration/workload"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// formatOne is the last commit whose indexers write shards of format 1 and whose
// searchers read only that.
const formatOne = "c701f55424d36b0978d72b4e4aa5212262d849bc"

// withoutFormats is the last commit whose searchers do not report the shard formats they read,
// and whose indexers do not check for them.
const withoutFormats = "e878012650c40b5b253251740b0e6b305c05b48a"

// buildAt builds the binary of an earlier commit. It skips the test if the clone lacks the
// commit.
func buildAt(t *testing.T, commit string) string {
	t.Helper()
	if out, err := exec.Command("git", "-C", "..", "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("commit %s is not in the history of this clone, or there is no git: %v %s", commit, err, out)
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "source.tar")
	binary := filepath.Join(dir, "trawl")
	for _, args := range [][]string{
		{"git", "-C", "..", "archive", "--output", archive, commit},
		{"tar", "-xf", archive, "-C", dir},
		{"go", "build", "-C", dir, "-o", binary, "./cmd/trawl"},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return binary
}

// TestUpgradeAcrossFormats upgrades from the last version of shard format 1 to this one in the
// order of the runbook, while repos are pushed to. Every answer on the way is complete and
// right. In the end shards of both formats are served.
func TestUpgradeAcrossFormats(t *testing.T) {
	old := buildAt(t, formatOne)
	u := newUpgrade(t, old, 4, "--compact-every", "0") // or it would merge shards of format 1 with later ones
	u.checkVersions(t, map[uint32]bool{format.Version1: true})
	u.checkAll(t)

	stop := u.Start(t.Context())
	defer stop()
	u.progress(t, 3, "before the upgrade")
	u.binary = "" // what is started from here on is the version under test
	for i, p := range u.searchers {
		p.stop(t)
		u.searchers[i] = u.startSearcher(t, i)
		u.ready(t, u.searchers[i])
		u.progress(t, 3, fmt.Sprintf("after searcher %d", i))
	}
	u.replaceRouter(t)
	u.progress(t, 3, "after the router")
	u.checkVersions(t, map[uint32]bool{format.Version1: true})
	u.indexer.stop(t)
	u.startIndexer(t, "--compact-every", "0")
	u.progress(t, 3, "after the indexer")
	stop()
	t.Logf("%d answers, %d pushes", u.Answers.Load(), u.Pushes.Load())

	u.checkAll(t)
	shards := u.checkVersions(t, map[uint32]bool{format.Version1: true, format.Version2: true})
	cmd := exec.Command(old, "shard", "verify", shards[format.Version2])
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "version") {
		t.Errorf("a searcher of format 1 would not refuse a shard of format 2: %v\n%s", err, out)
	}
	u.rollBackIndexer(t, old)
}

// TestUpgradeInTheWrongOrder begins with the indexers and ends with the searchers. The new
// indexer publishes nothing until both searchers read what it writes, and every answer on
// the way is complete and right.
func TestUpgradeInTheWrongOrder(t *testing.T) {
	u := newUpgrade(t, buildAt(t, withoutFormats), 3)
	stop := u.Start(t.Context())
	defer stop()
	u.progress(t, 3, "before the upgrade")
	u.binary = "" // what is started from here on is the version under test
	u.indexer.stop(t)
	u.startIndexer(t)
	u.lacks(t, u.indexer, "searchers: shards of format")
	pushes := u.Pushes.Load()
	u.replaceRouter(t)
	u.progress(t, 0, "after the router")
	u.searchers[0].stop(t)
	u.searchers[0] = u.startSearcher(t, 0)
	u.ready(t, u.searchers[0])
	u.progress(t, 0, "after searcher 0")
	u.lacks(t, u.indexer, "upgrade the searchers searcher1")
	if more := u.Pushes.Load() - pushes; more > 1 { // one may have been published already
		t.Errorf("%d pushes were published while a searcher was too old to read them", more)
	}
	u.searchers[1].stop(t)
	u.searchers[1] = u.startSearcher(t, 1)
	u.ready(t, u.searchers[1])
	u.progress(t, 3, "after searcher 1")
	stop()
	t.Logf("%d answers, %d pushes", u.Answers.Load(), u.Pushes.Load())
	u.checkAll(t)
}

// rollBackIndexer goes back to the old indexer alone, as the runbook says. That indexer cannot
// read shards of format 2, so it builds pushed repos in full.
func (u *upgrade) rollBackIndexer(t *testing.T, old string) {
	t.Helper()
	u.indexer.stop(t)
	u.binary = old
	u.startIndexer(t, "--compact-every", "0")
	for _, r := range u.Repos {
		if err := u.Push(t.Context(), r); err != nil {
			t.Fatalf("a push to %s after the old indexer came back: %v", r.Name, err)
		}
	}
	u.checkAll(t)
	u.checkVersions(t, map[uint32]bool{format.Version1: true})
}

// upgrade is a cluster under a workload.
type upgrade struct {
	*cluster
	*workload.Workload

	// front is read-locked during calls to the router and locked to replace it.
	front sync.RWMutex
}

// newUpgrade starts a cluster with the given number of repos, all roles run by an earlier
// binary.
func newUpgrade(t *testing.T, binary string, repos int, indexer ...string) *upgrade {
	t.Helper()
	u := &upgrade{cluster: &cluster{owner: t, dir: t.TempDir(), binary: binary}}
	u.Workload = &workload.Workload{Call: u.call, Patience: patience}
	u.startAll(t, 2)
	if len(indexer) > 0 {
		u.indexer.stop(t)
		u.startIndexer(t, indexer...)
	}
	for i := range repos {
		dir := filepath.Join(u.dir, fmt.Sprintf("repo%d", i))
		r, err := workload.NewRepo(t.Context(), i, dir, fmt.Sprintf("example.org/repo%d", i), dir, "")
		if err == nil {
			err = u.Index(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
		u.Repos = append(u.Repos, r)
	}
	return u
}

// call makes a call to the current router.
func (u *upgrade) call(ctx context.Context, f func(context.Context, searchv1.SearchServiceClient, ingestv1.IngestServiceClient) error) error {
	u.front.RLock()
	defer u.front.RUnlock()
	return f(ctx, u.search, u.ingest)
}

// replaceRouter starts another router, directs new calls to it, and stops the previous one when
// its calls have ended, as a load balancer does.
func (u *upgrade) replaceRouter(t *testing.T) {
	t.Helper()
	before := u.router
	next := *u.cluster
	next.startRouter(t)
	u.front.Lock()
	u.router, u.routerHTTP, u.search, u.ingest = next.router, next.routerHTTP, next.search, next.ingest
	u.front.Unlock()
	before.stop(t)
}

// progress waits for the given number of further pushes and for 20 further answers. None may
// fail.
func (u *upgrade) progress(t *testing.T, pushed uint64, when string) {
	t.Helper()
	pushes, answers := u.Pushes.Load()+pushed, u.Answers.Load()+20
	eventually(t, "pushes and answers "+when, func(context.Context) error {
		if err := u.Err(); err != nil {
			t.Fatalf("%s, after %d answers and %d pushes: %v", when, u.Answers.Load(), u.Pushes.Load(), err)
		}
		if u.Pushes.Load() < pushes || u.Answers.Load() < answers {
			return fmt.Errorf("%d of %d pushes, %d of %d answers", u.Pushes.Load(), pushes, u.Answers.Load(), answers)
		}
		return nil
	})
}

// checkAll runs every query once.
func (u *upgrade) checkAll(t *testing.T) {
	t.Helper()
	if err := u.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// checkVersions fails unless the served shards have exactly these format versions. It returns
// the path of one shard of each.
func (u *upgrade) checkVersions(t *testing.T, want map[uint32]bool) map[uint32]string {
	t.Helper()
	paths := map[uint32]string{}
	for root, err := range u.catalog(t).ListRoots(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range root.Record.GetShards() {
			path := filepath.Join(u.dir, "bucket", ref.GetKey())
			f, err := format.OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			version := f.Versions().Writer
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if !want[version] {
				t.Errorf("%s has a shard of format %d", root.Record.GetRepo(), version)
			}
			paths[version] = path
		}
	}
	if len(paths) != len(want) {
		t.Errorf("shards of formats %v, want %v", paths, want)
	}
	return paths
}
