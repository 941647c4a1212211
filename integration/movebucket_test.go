package integration

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"

	"github.com/trawl-search/trawl/internal/testrun"
)

// copyNew copies the files that the folder to lacks, as tools that copy buckets do.
func copyNew(t *testing.T, from, to string) (copied int) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if _, err := os.Stat(target); err == nil {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return ignoreGone(err)
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		copied++
		return os.WriteFile(target, data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

// TestMoveBucket follows the runbook: queries are answered completely throughout, pushes wait
// while the indexers are stopped, and nothing needs the old bucket afterwards.
func TestMoveBucket(t *testing.T) {
	c := newCluster(t, 2)
	alpha, beta := onlyFile(t, c.dir, "alpha"), onlyFile(t, c.dir, "beta")
	c.index(t, alpha, "example.org/alpha")
	c.index(t, beta, "example.org/beta")
	files := []string{"example.org/alpha:a.txt", "example.org/beta:a.txt"}
	asked := c.askWhile(t, "c:heron", files...)
	from, to := filepath.Join(c.dir, "bucket"), filepath.Join(c.dir, "bucket2")
	audit := func(want int, words string) {
		t.Helper()
		out, errs, exit := command(t, "gc", "--audit", "--contents", "--etcd-endpoints", c.etcd, "--bucket-url", "file://"+to)
		if exit != want || !strings.Contains(out+errs, words) {
			t.Errorf("audit: exit %d, want %d: %s%s", exit, want, out, errs)
		}
	}

	copyNew(t, from, to)
	alpha.write("late.txt", "a bittern\n")
	alpha.commit("after the first copy")
	c.index(t, alpha, "example.org/alpha")
	c.indexer.stop(t)
	beta.write("later.txt", "a bittern\n")
	beta.commit("while no indexer runs")
	waiting := c.put(t, beta.path, "example.org/beta")
	audit(1, "missing")
	if n := copyNew(t, from, to); n == 0 {
		t.Error("the second copy had nothing to do")
	}
	audit(0, "")

	c.bucketName = "bucket2"
	c.restartSearcher(t, 0)
	c.answeredBy(t, "searcher0")                             // the searchers of this test drain without a delay in which routers would notice
	if err := os.RemoveAll(c.searcherCache(1)); err != nil { // so that it must download from the new bucket
		t.Fatal(err)
	}
	c.restartSearcher(t, 1)
	if err := os.RemoveAll(from); err != nil {
		t.Fatal(err)
	}
	c.startIndexer(t)
	c.settled(t, waiting)
	asked()
	c.expect(t, "c:heron", files...)
	c.expect(t, "c:bittern", "example.org/alpha:late.txt", "example.org/beta:later.txt")
	audit(0, "")
	if _, err := os.Stat(from); err == nil {
		t.Error("something uses the old bucket")
	}
}

// answeredBy waits until a searcher has answered a call of the router.
func (c *cluster) answeredBy(t *testing.T, searcher string) {
	t.Helper()
	testrun.Eventually(t, searcher+" answers", func(ctx context.Context) error {
		resp, err := c.search.Search(ctx, &searchv1.SearchRequest{Query: "c:heron", Options: &searchv1.SearchOptions{Explain: true}})
		if err != nil {
			return err
		}
		for _, call := range resp.GetExplanation().GetSlowestCalls() {
			if call.GetSearcher() == searcher {
				return nil
			}
		}
		return fmt.Errorf("calls %v", resp.GetExplanation().GetSlowestCalls())
	})
}
