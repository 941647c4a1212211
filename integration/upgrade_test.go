package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/format"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// formatOne is the last commit whose indexers write shards of format 1, and whose
// searchers read no other.
const formatOne = "c701f55424d36b0978d72b4e4aa5212262d849bc"

// withoutFormats is the last commit whose searchers do not list the shard formats that they
// read, and whose indexers do not ask for it.
const withoutFormats = "e878012650c40b5b253251740b0e6b305c05b48a"

// buildAt builds the binary of an earlier commit. Where the clone does not have it, the
// test is skipped.
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

// TestUpgradeAcrossFormats goes from the last version of shard format 1 to this one in the
// order of the runbook, while repos are pushed to. Every answer on the way is complete, and
// right. In the end shards of both formats are served.
func TestUpgradeAcrossFormats(t *testing.T) {
	old := buildAt(t, formatOne)
	u := &upgrade{cluster: &cluster{owner: t, dir: t.TempDir(), binary: old}}
	u.startAll(t, 2)
	u.indexer.stop(t)
	u.startIndexer(t, "--compact-every", "0") // or it would merge shards of format 1 with later ones
	for i := range 4 {
		u.repos = append(u.repos, u.newPushed(t, i))
	}
	u.checkVersions(t, map[uint32]bool{format.Version1: true})
	u.checkAll(t)

	stop := u.pushAndAsk(t)
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
	t.Logf("%d answers, %d pushes", u.answers.Load(), u.pushes.Load())

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
	u := &upgrade{cluster: &cluster{owner: t, dir: t.TempDir(), binary: buildAt(t, withoutFormats)}}
	u.startAll(t, 2)
	for i := range 3 {
		u.repos = append(u.repos, u.newPushed(t, i))
	}
	stop := u.pushAndAsk(t)
	defer stop()
	u.progress(t, 3, "before the upgrade")
	u.binary = "" // what is started from here on is the version under test
	u.indexer.stop(t)
	u.startIndexer(t)
	u.lacks(t, u.indexer, "searchers: shards of format")
	pushes := u.pushes.Load()
	u.replaceRouter(t)
	u.progress(t, 0, "after the router")
	u.searchers[0].stop(t)
	u.searchers[0] = u.startSearcher(t, 0)
	u.ready(t, u.searchers[0])
	u.progress(t, 0, "after searcher 0")
	u.lacks(t, u.indexer, "upgrade the searchers searcher1")
	if more := u.pushes.Load() - pushes; more > 1 { // one may have been published already
		t.Errorf("%d pushes were published while a searcher was too old to read them", more)
	}
	u.searchers[1].stop(t)
	u.searchers[1] = u.startSearcher(t, 1)
	u.ready(t, u.searchers[1])
	u.progress(t, 3, "after searcher 1")
	stop()
	t.Logf("%d answers, %d pushes", u.answers.Load(), u.pushes.Load())
	u.checkAll(t)
}

// pushAndAsk pushes and asks queries until stop is called, which waits for the end of both.
func (u *upgrade) pushAndAsk(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for _, f := range []func(context.Context) error{u.push, u.ask, u.ask} {
		work.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				u.failed.CompareAndSwap(nil, &err)
			}
		})
	}
	return func() {
		cancel()
		work.Wait()
	}
}

// rollBackIndexer goes back to the old indexer alone, as the runbook says: it cannot read
// what the shards of format 2 hold, and builds what is pushed in full.
func (u *upgrade) rollBackIndexer(t *testing.T, old string) {
	t.Helper()
	u.indexer.stop(t)
	u.binary = old
	u.startIndexer(t, "--compact-every", "0")
	for _, r := range u.repos {
		if err := u.pushOne(t.Context(), r); err != nil {
			t.Fatalf("a push to %s after the old indexer came back: %v", r.name, err)
		}
	}
	u.checkAll(t)
	u.checkVersions(t, map[uint32]bool{format.Version1: true})
}

// upgrade is a cluster of which some repos are pushed to.
type upgrade struct {
	*cluster

	repos           []*pushedRepo
	answers, pushes atomic.Uint64
	failed          atomic.Pointer[error] // what ended a push or the queries first
	// front is held by who calls the router, and alone by who replaces it.
	front sync.RWMutex
}

// pushedRepo is a repo whose commit n has a file with "stamp<n>" in it, and other files
// that stay. The first one is never pushed to.
type pushedRepo struct {
	*repository

	name             string
	committed, shown atomic.Int64 // number of the last commit, and of the last one published
}

// stamp is the content of a repo's file at a commit.
func stamp(n int64) string { return fmt.Sprintf("the last commit is stamp%d here\n", n) }

func (u *upgrade) newPushed(t *testing.T, i int) *pushedRepo {
	t.Helper()
	r := &pushedRepo{repository: newRepository(t, u.dir, fmt.Sprintf("repo%d", i)), name: fmt.Sprintf("example.org/repo%d", i)}
	var source strings.Builder
	for line := range 600 {
		fmt.Fprintf(&source, "func heron%d_%d() { return kingFisher(%d) } // in repo%d\n", i, line*line%701, line%7, i)
	}
	r.write("heron.go", source.String())
	r.write("doc/same.md", "The kingfisher is the same in each.\n")
	r.write("now.txt", stamp(0))
	for n := range 9 { // of these files one may change, and the rest stay
		r.write(fmt.Sprintf("other/%d.txt", n), "an egret\n")
	}
	r.commit("first")
	u.index(t, r.repository, r.name)
	return r
}

// push commits to all repos but the first one, and waits until each push is published. At
// the end of the context it ends what it has begun.
func (u *upgrade) push(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		r := u.repos[1+n%(len(u.repos)-1)]
		if err := u.pushOne(context.WithoutCancel(ctx), r); err != nil {
			return fmt.Errorf("push to %s after commit %d: %w", r.name, r.shown.Load(), err)
		}
		u.pushes.Add(1)
	}
	return nil
}

// pushOne makes the next commit of a repo.
func (u *upgrade) pushOne(ctx context.Context, r *pushedRepo) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n := r.committed.Load() + 1
	if err := os.WriteFile(filepath.Join(r.path, "now.txt"), []byte(stamp(n)), 0o644); err != nil {
		return err
	}
	r.committed.Store(n)
	cmd := exec.CommandContext(ctx, "git", "-C", r.path, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-q", "-a", "-m", "next")
	cmd.Env = append(processEnv(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	epoch := uint64(0)
	err := u.call(func() error {
		put, err := u.ingest.PutRepo(ctx, &ingestv1.PutRepoRequest{Url: r.path, Name: r.name})
		epoch = put.GetEpoch()
		return err
	})
	for published := false; err == nil && !published; {
		err = u.call(func() error {
			got, err := u.ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: r.name})
			published = got.GetStatus().GetPublishedEpoch() >= epoch
			if err == nil && got.GetStatus().GetState() == ingestv1.State_STATE_FAILED {
				err = errors.New(got.GetStatus().GetReason())
			}
			return err
		})
		time.Sleep(20 * time.Millisecond)
	}
	if err == nil {
		r.shown.Store(n)
	}
	return err
}

// call makes a call to the router that is there.
func (u *upgrade) call(f func() error) error {
	u.front.RLock()
	defer u.front.RUnlock()
	return f()
}

// replaceRouter starts another router, and ends the one that was there when nobody calls it
// any more, as whoever balances the load between routers does.
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

// progress waits until there were that many more pushes, and more answers, none of which may
// have failed.
func (u *upgrade) progress(t *testing.T, pushed uint64, when string) {
	t.Helper()
	pushes, answers := u.pushes.Load()+pushed, u.answers.Load()+20
	eventually(t, "pushes and answers "+when, func(context.Context) error {
		if err := u.failed.Load(); err != nil {
			t.Fatalf("%s, after %d answers and %d pushes: %v", when, u.answers.Load(), u.pushes.Load(), *err)
		}
		if u.pushes.Load() < pushes || u.answers.Load() < answers {
			return fmt.Errorf("%d of %d pushes, %d of %d answers", u.pushes.Load(), pushes, u.answers.Load(), answers)
		}
		return nil
	})
}

// ask queries until the context ends; it fails at the first answer that is not the
// whole truth.
func (u *upgrade) ask(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		err := u.askStamp(ctx, u.repos[n%len(u.repos)])
		if err == nil {
			err = u.askSteady(ctx, n)
		}
		if err != nil {
			return err
		}
		u.answers.Add(2)
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// steady are queries for what no push changes, each with the paths that it finds in every repo.
var steady = []struct {
	query string
	paths []string
}{
	{"kingfisher", []string{"heron.go", "doc/same.md"}},
	{"case:yes kingFisher", []string{"heron.go"}},
	{`\bheron\d_4\b`, []string{"heron.go"}},
	{`func heron\d_4\(\)`, []string{"heron.go"}},
	{"\"the same in each\"", []string{"doc/same.md"}},
	{"eron1_", nil},
	{"f:now.txt", []string{"now.txt"}},
}

func (u *upgrade) askSteady(ctx context.Context, n int) error {
	s := steady[n%len(steady)]
	want := []string{}
	for i, r := range u.repos {
		for _, path := range s.paths {
			want = append(want, r.name+":"+path)
		}
		if s.query == "eron1_" && i == 1 {
			want = append(want, r.name+":heron.go")
		}
	}
	return u.call(func() error {
		answer, err := u.query(ctx, s.query)
		if err == nil {
			err = compare(answer, want)
		}
		if err != nil {
			err = fmt.Errorf("search %q: %w", s.query, err)
		}
		return err
	})
}

var stampedWord = regexp.MustCompile(`stamp(\d+)`)

// askStamp asks for the last commit of a repo. It is one that was published when it was asked,
// or a later one.
func (u *upgrade) askStamp(ctx context.Context, r *pushedRepo) error {
	return u.call(func() error {
		least := r.shown.Load()
		answer, err := u.query(ctx, "r:"+r.name+"$ stamp[0-9]+")
		most := r.committed.Load()
		if err == nil {
			err = compare(answer, []string{r.name + ":now.txt"})
		}
		if err != nil {
			return fmt.Errorf("the last commit of %s: %w", r.name, err)
		}
		found := stampedWord.FindSubmatch(content(answer.GetFiles()[0]))
		if len(found) == 0 {
			return fmt.Errorf("the last commit of %s is not shown: %q", r.name, content(answer.GetFiles()[0]))
		}
		if n, err := strconv.ParseInt(string(found[1]), 10, 64); err != nil || n < least || n > most {
			return fmt.Errorf("the last commit of %s is %d, published was %d and committed %d", r.name, n, least, most)
		}
		return nil
	})
}

// content is what an answer shows of a file.
func content(f *searchv1.FileMatch) (shown []byte) {
	for _, chunk := range f.GetChunks() {
		shown = append(shown, chunk.GetContent()...)
	}
	return bytes.TrimSpace(shown)
}

// checkAll asks every query once.
func (u *upgrade) checkAll(t *testing.T) {
	t.Helper()
	for n := range steady {
		if err := u.askSteady(t.Context(), n); err != nil {
			t.Error(err)
		}
	}
	for _, r := range u.repos {
		if err := u.askStamp(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
}

// checkVersions wants the shards that are served to be of these versions of the format, each
// at least once. It returns one of each.
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
