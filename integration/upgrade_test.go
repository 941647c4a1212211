package integration

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/integration/workload"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// upgradeFromEnv names the commit from which the upgrades start. Default: the parent of the one that is
// checked out.
const upgradeFromEnv = "TRAWL_TEST_UPGRADE_FROM"

// buildBefore builds the binary of the commit from which the upgrades start.
func buildBefore(t *testing.T) string {
	t.Helper()
	commit := cmp.Or(os.Getenv(upgradeFromEnv), "HEAD^")
	if out, err := exec.Command("git", "-C", "..", "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		t.Fatalf("the history of this clone lacks commit %s, or there is no git: %v %s", commit, err, out)
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

// TestUpgradeInOrder upgrades from the commit before this one in the order of the runbook, while
// repos are pushed to, and then rolls the indexer back. Every answer on the way is complete and
// right, and every searcher reads all that is served.
func TestUpgradeInOrder(t *testing.T) {
	testrun.NeedAll(t)
	old := buildBefore(t)
	u := newUpgrade(t, old, 4)
	before := u.versions(t)
	stop := u.Start(t.Context())
	defer stop()
	u.progress(t, 3, "before the upgrade")
	u.binary = "" // what is started from here on is the version under test
	for i := range u.searchers {
		u.replaceSearcher(t, i)
		u.progress(t, 3, fmt.Sprintf("after searcher %d", i))
	}
	u.replaceRouter(t)
	u.progress(t, 3, "after the router")
	if now := u.versions(t); !slices.Equal(now, before) {
		t.Errorf("shards of formats %v are served before the indexer is upgraded, want %v", now, before)
	}
	u.replaceIndexer(t)
	u.progress(t, 3, "after the indexer")
	u.binary = old
	u.replaceIndexer(t)
	u.progress(t, 3, "after going back to the old indexer")
	stop()
	t.Logf("%d answers, %d pushes", u.Answers.Load(), u.Pushes.Load())
	u.checkAll(t)
}

// TestUpgradeInTheWrongOrder begins with the indexer and ends with the searchers. If it writes
// another format, the new indexer publishes nothing until both searchers read it. Every answer on
// the way is complete and right.
func TestUpgradeInTheWrongOrder(t *testing.T) {
	testrun.NeedAll(t)
	u := newUpgrade(t, buildBefore(t), 3)
	stop := u.Start(t.Context())
	defer stop()
	u.progress(t, 3, "before the upgrade")
	waits, pushed := len(u.cannotRead(t, format.Version)) > 0, uint64(3)
	u.binary = "" // what is started from here on is the version under test
	u.replaceIndexer(t)
	if waits {
		u.lacks(t, u.indexer, "searchers: shards of format")
		pushed = 0
	} else {
		u.ready(t, u.indexer)
	}
	pushes := u.Pushes.Load()
	u.replaceRouter(t)
	u.progress(t, pushed, "after the router")
	u.replaceSearcher(t, 0)
	u.progress(t, pushed, "after searcher 0")
	if waits {
		u.lacks(t, u.indexer, "upgrade the searchers searcher1")
		if more := u.Pushes.Load() - pushes; more > 1 { // one may have been published already
			t.Errorf("%d pushes were published while a searcher was too old to read them", more)
		}
	}
	u.replaceSearcher(t, 1)
	u.progress(t, 3, "after searcher 1")
	stop()
	t.Logf("%d answers, %d pushes; the indexer waits: %v", u.Answers.Load(), u.Pushes.Load(), waits)
	u.checkAll(t)
}

// upgrade is a cluster under a workload.
type upgrade struct {
	*cluster
	*workload.Workload

	store   *catalog.Store
	members *membership.Members
	// front is read-locked during calls to the router and locked to replace it.
	front sync.RWMutex
}

// newUpgrade starts a cluster with the given number of repos, all roles run by an earlier
// binary.
func newUpgrade(t *testing.T, binary string, repos int) *upgrade {
	t.Helper()
	u := &upgrade{cluster: &cluster{owner: t, dir: t.TempDir(), binary: binary}}
	u.Workload = &workload.Workload{Call: u.call, Patience: patience}
	u.startAll(t, 2)
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{u.etcd}})
	if err != nil {
		t.Fatal(err)
	}
	u.store = catalog.New(client, "")
	u.members = membership.NewMembers(t.Context(), client, u.store.Prefix(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { u.members.Close(); client.Close() })
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

// replaceSearcher stops a searcher and starts it again, with the current binary.
func (u *upgrade) replaceSearcher(t *testing.T, i int) {
	t.Helper()
	u.searchers[i].stop(t)
	u.searchers[i] = u.startSearcher(t, i)
	u.ready(t, u.searchers[i])
}

// replaceIndexer stops the indexer and starts it again, with the current binary.
func (u *upgrade) replaceIndexer(t *testing.T) {
	t.Helper()
	u.indexer.stop(t)
	u.startIndexer(t)
}

// progress waits for the given number of further pushes and for 20 further answers. None may
// fail, and every searcher must read all that is served then.
func (u *upgrade) progress(t *testing.T, pushed uint64, when string) {
	t.Helper()
	pushes, answers := u.Pushes.Load()+pushed, u.Answers.Load()+20
	testrun.Eventually(t, "pushes and answers "+when, func(context.Context) error {
		if err := u.Err(); err != nil {
			t.Fatalf("%s, after %d answers and %d pushes: %v", when, u.Answers.Load(), u.Pushes.Load(), err)
		}
		if u.Pushes.Load() < pushes || u.Answers.Load() < answers {
			return fmt.Errorf("%d of %d pushes, %d of %d answers", u.Pushes.Load(), pushes, u.Answers.Load(), answers)
		}
		return nil
	})
	for _, version := range u.versions(t) {
		if ids := u.cannotRead(t, version); len(ids) > 0 {
			t.Errorf("%s: shards of format %d are served, which %v cannot read", when, version, ids)
		}
	}
}

// checkAll runs every query once.
func (u *upgrade) checkAll(t *testing.T) {
	t.Helper()
	if err := u.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// versions are the versions of the format that the served shards have, ascending.
func (u *upgrade) versions(t *testing.T) (found []uint32) {
	t.Helper()
	for root, err := range u.store.ListRoots(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range root.Record.GetShards() {
			found = append(found, ref.GetFormatVersion())
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// cannotRead are the ids of the live searchers that do not read a version of the format.
func (u *upgrade) cannotRead(t *testing.T, version uint32) (ids []string) {
	t.Helper()
	live, err := u.members.WaitListed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range live.CannotRead(version) {
		ids = append(ids, s.GetId())
	}
	return ids
}
