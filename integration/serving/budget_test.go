package serving_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// withBallast adds repos to a corpus. Their shards are large, because their text does not
// compress.
func withBallast(corpus *indextest.Corpus, rng *rand.Rand) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_\n"
	for i := range 16 {
		repo := indextest.Repo{Name: fmt.Sprintf("zz/ballast%02d", i), Branches: []string{"main"}}
		for d := range 10 {
			text := make([]byte, 14_000)
			for j := range text {
				text[j] = letters[rng.IntN(len(letters))]
			}
			repo.Documents = append(repo.Documents, indextest.Document{
				Path: fmt.Sprintf("file%02d.txt", d), Content: text, Branches: repo.Branches, Language: "Text",
			})
		}
		corpus.Repos = append(corpus.Repos, repo)
	}
}

// onDisk returns the disk space that the files of a folder take.
func (c *cluster) onDisk(dir string) (sum int64) {
	c.t.Helper()
	c.must(filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		sum += info.Sys().(*syscall.Stat_t).Blocks * 512
		return nil
	}))
	return sum
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// TestMoreShardsThanDisk: a searcher with shards of at least six times its disk budget is
// ready. It answers queries of every kind completely and as brute force does, even many at
// once, and its disk never holds more than the budget.
func TestMoreShardsThanDisk(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	corpus := indextest.Random(seed)
	withBallast(corpus, rng)
	const budget = 1 << 20
	tel, spans := telemetrytest.New(t)
	c := startWith(t, &cluster{replication: 1, diskBudget: fmt.Sprint(budget), tel: tel, spans: spans}, 1)
	c.publishCorpus(corpus, rng)
	shards := c.onDisk(filepath.Join(c.dir, "bucket"))
	files, err := filepath.Glob(filepath.Join(c.dir, "bucket", "shards", "*"))
	c.must(err)
	var largest int64
	for _, f := range files {
		largest = max(largest, c.onDisk(f))
	}
	t.Logf("%d shards, the largest of %d bytes, %d in all", len(files), largest, shards)
	if shards < 6*budget {
		t.Fatalf("the shards have only %d bytes", shards)
	}
	checkDisk := func() {
		t.Helper()
		var taken int64
		for range 5 { // blocks can move from one file to another during the measurement
			if taken = c.onDisk(c.cache(0)); taken <= budget {
				return
			}
		}
		t.Errorf("%d bytes are on disk, the budget is of %d", taken, budget)
	}
	checkDisk()
	asked := 0
	for _, q := range indextest.Queries(corpus, seed, 60) {
		want := c.oracle(corpus, q.Text)
		if a, b := describe(c.allPages(q.Text, rng)), describeOracle(want); !slices.Equal(a, b) {
			t.Errorf("query %q (%s):\n got %.500q\nwant %.500q", q.Text, q.Kind, a, b)
		}
		checkDisk()
		asked++
	}
	if asked < 40 {
		t.Errorf("only %d queries were asked", asked)
	}
	var asking sync.WaitGroup
	for i := range 6 {
		asking.Go(func() {
			// Without any n-gram: everything is decoded.
			resp, err := c.search.Search(t.Context(), &searchv1.SearchRequest{Query: fmt.Sprintf("[%d]_|_[%d]", i, i)})
			if err != nil || !resp.Coverage.Complete {
				t.Errorf("%v, %v", resp.GetCoverage(), err)
			}
		})
	}
	checkDisk()
	asking.Wait()
	checkDisk()
	t.Logf("%d queries over %d bytes of shards in %d bytes of disk", asked, shards, budget)
}
