package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/integration/recorder"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
)

// checkTime bounds the check of one repo's history.
const checkTime = time.Minute

// roundSize says how much one history must have, under faults throughout. A smaller one shows
// nothing: on a slow machine a round lasts longer, up to ten times its time.
type roundSize struct {
	time time.Duration
	// operations in all, and of each kind.
	operations, ofKind int
}

// size is that of the rounds of this run.
func size() roundSize {
	if testrun.All() || os.Getenv("TRAWL_TEST_SOAK") != "" {
		return roundSize{2 * time.Minute, 1000, 10}
	}
	return roundSize{30 * time.Second, 200, 4}
}

// TestLinearizable: servers and roles are killed, paused and cut off, while shards are merged
// and packed and garbage is collected as early as possible. For each repo one order of
// operations explains all that callers asked and were answered. In the end every acknowledged
// request is published, and the bucket holds what is served and nothing else. With
// TRAWL_TEST_SOAK=1h further rounds follow on the same cluster for an hour.
func TestLinearizable(t *testing.T) {
	c := newCluster(t, layout{etcd: 3, indexers: 2, searchers: 3, routers: 2, indexerArgs: churn()})
	end := time.Now().Add(soakTime(t))
	for round := 1; round == 1 || time.Now().Before(end); round++ {
		ok := t.Run(fmt.Sprintf("round%d", round), func(t *testing.T) { c.within(t).linearRound(round) })
		if !ok {
			return // the next round would find the same faults
		}
	}
}

// churn makes indexers merge and pack shards at the first opportunity, and collect garbage as
// soon as no query of these tests can be reading it.
func churn() []string {
	return []string{
		"--compact-every", "500ms", "--compact-deltas", "2", "--compact-settle", "0s", "--compact-reclaim", "2s",
		"--gc-every", "2s", "--gc-hold", (2 * recorder.CallTime).String(),
	}
}

// soakTime is how long to start further rounds; 0 means a single round.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("TRAWL_TEST_SOAK")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("TRAWL_TEST_SOAK: %v", err)
	}
	return d
}

const (
	// recordedRepos are enough to be packed together.
	recordedRepos = 12
	// ballastFiles is how many files never change. They are enough that a commit changes
	// little of its repo and is indexed as a delta.
	ballastFiles = 30
)

// linearRound records and judges one history of new repos.
func (c *cluster) linearRound(round int) {
	var repos []*recorder.Repo
	for i := range recordedRepos {
		r := c.newRepository(fmt.Sprintf("round%d-%d", round, i))
		r.load(c.rng, ballastFiles)
		repos = append(repos, &recorder.Repo{Name: r.name, URL: r.url, Commit: func(files ...string) string { return r.Files("main", append(files, r.ballast...)...) }})
	}
	var routers []recorder.Router
	for _, rc := range c.clients {
		routers = append(routers, recorder.Router{Search: rc.search, Ingest: rc.ingest})
	}
	w, want := recorder.New(c.t, c.rng, repos, routers), size()
	stop := w.Start()
	for start := time.Now(); time.Since(start) < want.time || !w.Reached(want.operations, want.ofKind) && time.Since(start) < 10*want.time; {
		c.trouble()
	}
	stop()
	_, etcd := c.catalog()
	w.Settle(etcd, catalog.DefaultPrefix)
	c.clean()
	if !w.Reached(want.operations, want.ofKind) {
		c.t.Error("too few operations to show anything")
	}
	start := time.Now()
	if err := w.History.Check(checkTime, filepath.Join(outputDir(c.t), "history")); err != nil {
		c.t.Error(err)
	}
	packs, shards := w.Packs()
	c.t.Logf("judged in %.1f s: %v; %d of %d shards were of several repos", time.Since(start).Seconds(), w.History.Counts(), packs, shards)
}

// clean waits until the bucket holds what is served, all of it and nothing else.
func (c *cluster) clean() {
	c.t.Helper()
	g := c.collector(nil)
	testrun.Eventually(c.t, "all garbage is collected", func(context.Context) error {
		if found := c.findings(g); len(found) > 0 {
			time.Sleep(recorder.CallTime) // an audit reads everything
			return fmt.Errorf("the bucket differs from what is served: %v", found)
		}
		return nil
	})
}

// outputDir is where a test leaves the evidence of a failure.
func outputDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TRAWL_TEST_OUTPUT")
	if dir == "" {
		dir = filepath.Join("..", "..", ".cache", "cluster", "logs")
	}
	return filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "_"))
}
