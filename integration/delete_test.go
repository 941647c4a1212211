package integration

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"

	"github.com/trawl-search/trawl/internal/testrun"
)

// secret is a repository with a unique word, in a file's content and in its path.
type secret struct {
	*repository
	name, word string
}

func newSecret(t *testing.T, c *cluster, name string) secret {
	t.Helper()
	s := secret{newRepository(t, c.dir, name), "example.org/" + name, strings.ToLower(rand.Text())}
	s.write("x"+s.word+".txt", s.word+"\n")
	s.commit("first")
	c.index(t, s.repository, s.name)
	return s
}

// traces returns the files below folders of the cluster that contain the word. It ignores
// files that disappear during the walk.
func (s secret) traces(t *testing.T, c *cluster, folders ...string) (found []string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(c.dir, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return ignoreGone(err)
			}
			content, err := os.ReadFile(path)
			if bytes.Contains(content, []byte(s.word)) {
				found = append(found, path)
			}
			return ignoreGone(err)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// mirrors counts the copies of repositories that the indexer has.
func (c *cluster) mirrors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(c.dir, "indexer", "mirrors"))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// restartSearcher starts a searcher anew with the settings.
func (c *cluster) restartSearcher(t *testing.T, i int, args ...string) {
	t.Helper()
	c.searchers[i].stop(t)
	c.searchers[i] = c.startSearcher(t, i, args...)
	c.ready(t, c.searchers[i])
}

var places = []string{"bucket", "searcher0", "searcher1"}

// deleteAndLook deletes a repository, waits, and looks for the word in the raw bytes of the
// bucket and of all disks. The indexer must keep the given number of mirrors.
func (c *cluster) deleteAndLook(t *testing.T, s secret, copies int) {
	t.Helper()
	for _, place := range places {
		testrun.Until(t, place+" has something of "+s.name, func() bool { return len(s.traces(t, c, place)) > 0 })
	}
	out, errs, exit := command(t, "repos", "delete", "--wait", "--addr="+c.router.addresses(t).GRPC, s.name)
	if found := s.traces(t, c, append(places, "indexer")...); len(found) > 0 || exit != 0 || c.mirrors(t) != copies {
		t.Errorf("exit %d, %d copies, want %d: %s is in %q after\n%s%s", exit, c.mirrors(t), copies, s.name, found, out, errs)
	}
	if !strings.Contains(errs, "left in") || !strings.Contains(out, "gone from the bucket and from the disks of 2 searchers and 1 indexer") {
		t.Errorf("it says\n%s%s", errs, out)
	}
}

// TestDeletionIsWaitedFor: when the wait ends, no object and no file has bytes of the repo.
// The repo was alone in its shard, had been deleted and put again, or shared a shard.
func TestDeletionIsWaitedFor(t *testing.T) {
	c := newCluster(t, 2)
	quick := []string{"--gc-every", "1s", "--gc-hold", "1s"}
	c.indexer.stop(t)
	c.startIndexer(t, append(quick, "--compact-every", "0s")...)
	for i := range c.searchers {
		c.restartSearcher(t, i, "--grace", "1s")
	}
	alone := newSecret(t, c, "alone")
	var packed []secret
	for i := range 8 {
		packed = append(packed, newSecret(t, c, fmt.Sprintf("packed%d", i)))
	}
	c.deleteAndLook(t, alone, 8)

	// A repo that is put again after a deletion is a new one, in the bucket too.
	if _, err := c.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: packed[7].name}); err != nil {
		t.Fatal(err)
	}
	c.index(t, packed[7].repository, packed[7].name)
	c.deleteAndLook(t, packed[7], 7)
	c.index(t, packed[7].repository, packed[7].name)

	c.indexer.stop(t)
	c.startIndexer(t, append(quick, "--compact-every", "300ms", "--compact-settle", "0s", "--compact-reclaim", "0s")...)
	store := c.catalog(t)
	testrun.Eventually(t, "repos share a shard", func(ctx context.Context) error {
		keys, err := store.PacksOf(ctx, packed[0].name)
		if err == nil && len(keys) != 1 {
			err = fmt.Errorf("it is in %q", keys)
		}
		return err
	})
	c.deleteAndLook(t, packed[0], 7)
	c.expect(t, packed[1].word, packed[1].name+":x"+packed[1].word+".txt")
}

// TestDeletionWaitsForSearchers: the wait goes on while a searcher still has the file, and
// reports which searcher.
func TestDeletionWaitsForSearchers(t *testing.T) {
	c := newCluster(t, 2)
	c.indexer.stop(t)
	c.startIndexer(t, "--gc-every", "1s", "--gc-hold", "1s")
	c.restartSearcher(t, 0, "--grace", "1s")
	c.restartSearcher(t, 1, "--grace", "10m") // also how often it reports what its disk holds
	s := newSecret(t, c, "kept")
	waiting := start(t, "the wait", "repos", "delete", "--wait", "--addr", c.router.addresses(t).GRPC, s.name)
	await(t, waiting, "that only one searcher has it", func(line string) (bool, bool) {
		return true, strings.HasPrefix(line, s.name+": left in searcher searcher1 (within 11m")
	})
	if found := s.traces(t, c, "bucket", "searcher0"); len(found) > 0 {
		t.Errorf("it is in %q", found)
	}
	c.restartSearcher(t, 1, "--grace", "1s")
	<-waiting.done
	if found := s.traces(t, c, places...); len(found) > 0 || waiting.err != nil {
		t.Errorf("it is in %q: %v\n%s", found, waiting.err, waiting.tail(10))
	}
}
