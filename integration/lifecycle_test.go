package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/integration/workload"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestLifeOfRepositories follows three repositories from the first indexing through an
// update, a deletion, and crashes of every process.
func TestLifeOfRepositories(t *testing.T) {
	c := newCluster(t, 3)
	alpha, beta, gamma := threeRepositories(t, c.dir)
	c.index(t, alpha, "example.org/alpha")
	c.index(t, beta, "example.org/beta", "main", "release")
	c.index(t, gamma, "example.org/gamma")

	t.Run("search across repositories", func(t *testing.T) { searchAcross(t, c) })
	t.Run("the command line finds the same", func(t *testing.T) { searchByCommand(t, c) })
	t.Run("a file is given back", func(t *testing.T) { getFile(t, c) })
	t.Run("an update replaces", func(t *testing.T) { update(t, c, alpha) })
	t.Run("a delete removes", func(t *testing.T) { remove(t, c) })
	t.Run("a searcher dies under load", func(t *testing.T) { killSearcher(t, c) })
	t.Run("everything crashes", func(t *testing.T) { crashAll(t, c, gamma) })
}

// threeRepositories share the word "heron" and have one word each of their own.
func threeRepositories(t *testing.T, dir string) (alpha, beta, gamma *repository) {
	t.Helper()
	alpha, beta, gamma = newRepository(t, dir, "alpha"), newRepository(t, dir, "beta"), newRepository(t, dir, "gamma")
	alpha.write("bird.go", "package bird\n\n// The heron waits.\nfunc Wait() { alphaOnly() }\n")
	alpha.write("doc/notes.md", "nothing here\n")
	alpha.commit("first")
	beta.write("src/pond.py", "def heron():\n    return 'betaOnly'\n")
	beta.commit("first")
	beta.git("checkout", "-q", "-b", "release")
	beta.write("src/released.py", "heron = 'releaseOnly'\n")
	beta.commit("released")
	beta.git("checkout", "-q", "main")
	gamma.write("Heron.txt", "HERON gammaOnly\n")
	gamma.commit("first")
	return alpha, beta, gamma
}

func searchAcross(t *testing.T, c *cluster) {
	answer := c.expect(t, "c:heron", "example.org/alpha:bird.go", "example.org/beta:src/pond.py",
		"example.org/beta:src/released.py", "example.org/gamma:Heron.txt")
	for _, f := range answer.GetFiles() {
		chunk := f.GetChunks()[0]
		r := chunk.GetRanges()[0]
		start := chunk.GetContentStart().GetByteOffset()
		found := chunk.GetContent()[r.GetStart().GetByteOffset()-start : r.GetEnd().GetByteOffset()-start]
		if !strings.EqualFold(string(found), "heron") {
			t.Errorf("%s: the match is %q", f.GetPath(), found)
		}
	}
	c.expect(t, "HERON", "example.org/gamma:Heron.txt")
	c.expect(t, `lang:python re\w+Only`, "example.org/beta:src/released.py")
	c.expect(t, "b:release heron", "example.org/beta:src/pond.py", "example.org/beta:src/released.py")
	c.expect(t, "r:alpha or betaonly", "example.org/alpha:bird.go", "example.org/alpha:doc/notes.md", "example.org/beta:src/pond.py")
	c.expect(t, "f:heron -lang:python", "example.org/gamma:Heron.txt")
	c.expect(t, "no such words anywhere")
}

func searchByCommand(t *testing.T, c *cluster) {
	addr := "--addr=" + c.router.addresses(t).GRPC
	out, errs, exit := command(t, "search", addr, "--heading", "--color", "always", "alphaOnly")
	if exit != 0 || !strings.Contains(out, "\x1b[1;31malphaOnly\x1b[0m") || !strings.Contains(out, "     \x1b[32m4\x1b[0m") {
		t.Errorf("exit %d: %s%s", exit, out, errs)
	}
	out, errs, exit = command(t, "search", addr, "--json", "alphaOnly")
	if exit != 0 || !strings.Contains(out, `"repo":"example.org/alpha","path":"bird.go"`) {
		t.Errorf("exit %d: %s%s", exit, out, errs)
	}
	out, errs, exit = command(t, "search", addr, "-w", "alphaOnly")
	if exit != 0 || errs != "" || !strings.HasPrefix(out, "example.org/alpha:bird.go:4:") {
		t.Errorf("exit %d: %s%s", exit, out, errs)
	}
	out, errs, exit = command(t, "search", addr, "-w", "alphaOnl")
	if exit != 1 || out != "" || !strings.HasPrefix(errs, "0 matches, complete over 3 repos: ") {
		t.Errorf("exit %d: %s%s", exit, out, errs)
	}
	out, errs, exit = command(t, "repos", addr)
	if exit != 0 || strings.Count(out, "published") != 3 {
		t.Errorf("exit %d: %s%s", exit, out, errs)
	}
	_, errs, exit = command(t, "search", addr, "heron (alpha")
	if exit != 2 || !strings.Contains(errs, "heron (alpha\n") || !strings.Contains(errs, "^") {
		t.Errorf("a syntax error is not pointed at: exit %d: %s", exit, errs)
	}
}

func getFile(t *testing.T, c *cluster) {
	got, err := c.search.GetFile(t.Context(), &searchv1.GetFileRequest{
		Repo: "example.org/beta", Path: []byte("src/released.py"), Branch: "release",
	})
	if err != nil || string(got.GetContent()) != "heron = 'releaseOnly'\n" || got.GetLanguage() != "Python" {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = c.search.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "example.org/beta", Path: []byte("src/released.py")})
	if err != nil || string(got.GetContent()) != "heron = 'releaseOnly'\n" {
		t.Errorf("a file that only another branch has: %v, %v", got, err)
	}
	_, err = c.search.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "example.org/beta", Path: []byte("src/released.py"), Branch: "main"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("a file of another branch: %v", err)
	}
}

func update(t *testing.T, c *cluster, alpha *repository) {
	before := c.index(t, alpha, "example.org/alpha") // nothing new: the same generation
	alpha.write("bird.go", "package bird\n\n// The heron flies.\nfunc Fly() { secondCommit() }\n")
	commit := alpha.commit("second")
	after := c.index(t, alpha, "example.org/alpha")
	if before.GetGeneration() != 1 || after.GetGeneration() != 2 {
		t.Errorf("generations %d and %d, want 1 and 2", before.GetGeneration(), after.GetGeneration())
	}
	answer := c.expect(t, "secondCommit", "example.org/alpha:bird.go")
	if len(answer.GetFiles()) == 1 && answer.GetFiles()[0].GetCommit() != commit {
		t.Errorf("found at commit %s, want %s", answer.GetFiles()[0].GetCommit(), commit)
	}
	c.expect(t, "alphaOnly")
	c.expect(t, "heron waits")
}

func remove(t *testing.T, c *cluster) {
	if _, err := c.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: "example.org/beta"}); err != nil {
		t.Fatal(err)
	}
	c.expect(t, "c:heron", "example.org/alpha:bird.go", "example.org/gamma:Heron.txt")
	c.expect(t, "betaOnly")
	if _, err := c.ingest.GetRepo(t.Context(), &ingestv1.GetRepoRequest{Name: "example.org/beta"}); status.Code(err) != codes.NotFound {
		t.Errorf("GetRepo of a deleted repo: %v", err)
	}
}

// killSearcher kills one of three searchers while queries run. With two
// replicas of each shard every answer must be complete.
func killSearcher(t *testing.T, c *cluster) {
	stop := make(chan struct{})
	results := make(chan error, 4)
	var answered sync.WaitGroup
	answered.Add(cap(results)) // one for each worker's first answers
	for range cap(results) {
		go func() { results <- askUntil(t.Context(), c, stop, answered.Done) }()
	}
	answered.Wait()
	c.searchers[0].kill()
	// Long enough for the dead searcher's lease to end and placement to change.
	time.Sleep(12 * time.Second)
	close(stop)
	for range cap(results) {
		if err := <-results; err != nil {
			t.Errorf("while a searcher died: %v", err)
		}
	}
	c.searchers[0] = c.startSearcher(t, 0)
	c.ready(t, c.searchers[0])
	c.expect(t, "c:heron", "example.org/alpha:bird.go", "example.org/gamma:Heron.txt")
}

// askUntil queries until stop is closed. It fails at the first answer that is wrong or
// incomplete. It calls warm once it has a few answers.
func askUntil(ctx context.Context, c *cluster, stop <-chan struct{}, warm func()) error {
	for n := 0; ; n++ {
		if n == 10 {
			warm()
		}
		select {
		case <-stop:
			return nil
		default:
		}
		answer, err := c.query(ctx, "c:heron")
		if err == nil {
			err = workload.Compare(answer, []string{"example.org/alpha:bird.go", "example.org/gamma:Heron.txt"})
		}
		if err != nil {
			if n < 10 {
				warm()
			}
			return fmt.Errorf("answer %d: %w", n+1, err)
		}
	}
}

// crashAll makes a request while no indexer runs, kills everything once it is acknowledged,
// wipes NATS, and starts everything again on the remaining data.
func crashAll(t *testing.T, c *cluster, gamma *repository) {
	c.indexer.kill()
	gamma.write("late.txt", "acknowledged before the crash\n")
	gamma.commit("late")
	put := c.put(t, gamma.path, "example.org/gamma")
	c.killAll()
	wipeNATS(t, filepath.Join(c.dir, "servers"))
	c.startAll(t, 3)

	c.expect(t, "c:heron", "example.org/alpha:bird.go", "example.org/gamma:Heron.txt")
	c.expect(t, "secondCommit", "example.org/alpha:bird.go")
	if s := c.settled(t, put); s.GetState() != ingestv1.State_STATE_PUBLISHED {
		t.Fatalf("the request from before the crash: %v", s)
	}
	c.expect(t, "acknowledged before", "example.org/gamma:late.txt")
	list, err := c.search.List(t.Context(), &searchv1.ListRequest{})
	if err != nil || len(list.GetRepos()) != 2 {
		t.Errorf("repositories after the crash: %v, %v", list.GetRepos(), err)
	}
	for _, p := range append([]*process{c.router, c.indexer}, c.searchers...) {
		p.stop(t)
	}
	c.servers.stop(t)
}

// wipeNATS removes what the embedded NATS server keeps.
func wipeNATS(t *testing.T, dir string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "nats*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no NATS data in %s: %v", dir, err)
	}
	for _, path := range found {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRolesWaitForServers: roles that start before etcd and NATS wait for
// them, say so, and work once they are there.
func TestRolesWaitForServers(t *testing.T) {
	c := &cluster{owner: t, dir: t.TempDir(), etcd: "http://127.0.0.1:1", nats: "nats://127.0.0.1:1"}
	c.searchers = []*process{c.startSearcher(t, 0)}
	c.startIndexer(t)
	router := c.role(t, "router", "router", "--nats-url", c.nats)
	roles := []*process{c.searchers[0], c.indexer, router}
	for _, p := range roles {
		at := p.addresses(t)
		testrun.Eventually(t, p.name+" says what it waits for", func(ctx context.Context) error {
			text, code, err := get(ctx, "http://"+at.HTTP+"/readyz")
			if err == nil && (code != 503 || !strings.Contains(text, "etcd")) {
				err = fmt.Errorf("%d: %s", code, text)
			}
			return err
		})
		if text, code, err := get(t.Context(), "http://"+at.HTTP+"/healthz"); err != nil || code != 200 {
			t.Errorf("%s is not healthy while it waits: %d %s %v", p.name, code, text, err)
		}
		p.stop(t)
	}
}
