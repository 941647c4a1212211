package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/integration/history"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
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
		"--gc-every", "2s", "--gc-hold", (2 * callTime).String(),
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

// linearRound records and judges one history of new repos.
func (c *cluster) linearRound(round int) {
	w, want := c.newWorkload(round), size()
	stop := w.start()
	for start := time.Now(); time.Since(start) < want.time || !w.enough(want) && time.Since(start) < 10*want.time; {
		c.trouble()
	}
	stop()
	w.settle()
	for _, r := range w.repos {
		w.addWrites(r)
	}
	c.clean()
	if !w.enough(want) {
		c.t.Error("too few operations to show anything")
	}
	start := time.Now()
	if err := w.history.Check(checkTime, filepath.Join(outputDir(c.t), "history")); err != nil {
		c.t.Error(err)
	}
	c.t.Logf("judged in %.1f s: %v; %d of %d shards were of several repos", time.Since(start).Seconds(), w.history.Counts(), w.packs(), len(w.holders))
}

// clean waits until the bucket holds what is served, all of it and nothing else.
func (c *cluster) clean() {
	c.t.Helper()
	g := c.collector(nil)
	testrun.Eventually(c.t, "all garbage is collected", func(context.Context) error {
		if found := c.findings(g); len(found) > 0 {
			time.Sleep(callTime) // an audit reads everything
			return fmt.Errorf("the bucket differs from what is served: %v", found)
		}
		return nil
	})
}

// enough reports whether the history has enough operations to show anything.
func (w *workload) enough(want roundSize) bool {
	counts, total := w.history.Counts(), 0
	for _, kind := range []history.Kind{history.Put, history.Delete, history.Status, history.Search, history.List} {
		if counts[kind] < want.ofKind {
			return false
		}
		total += counts[kind]
	}
	return total >= want.operations
}

// addWrites adds a repo's changes to the history, in the order that etcd has recorded:
// requests, publications and deletions. Only the callers' answers show when each change became
// visible.
func (w *workload) addWrites(r *tracked) {
	w.t.Helper()
	changes := map[int64]history.Write{} // by revision
	for _, e := range w.events("desired/" + r.name) {
		changes[e.Kv.ModRevision] = history.Write{Kind: history.Delete, Answer: history.Answer{Revision: e.Kv.ModRevision}}
		if e.Type == clientv3.EventTypePut {
			var desired catalogv1.Desired
			w.must(proto.Unmarshal(e.Kv.Value, &desired))
			changes[e.Kv.ModRevision] = history.Write{Kind: history.Put, Answer: history.Answer{Epoch: desired.GetEpoch()}}
		}
	}
	for _, e := range w.events("roots/" + r.name) {
		if e.Type != clientv3.EventTypePut {
			continue // deleted together with the desired state, which is recorded
		}
		var root catalogv1.Root
		w.must(proto.Unmarshal(e.Kv.Value, &root))
		for _, ref := range root.GetShards() {
			w.holders[ref.GetKey()] = append(w.holders[ref.GetKey()], r.name)
		}
		changes[e.Kv.ModRevision] = history.Write{Kind: history.Publish, Answer: history.Answer{
			Generation: root.GetGeneration(), Epoch: root.GetEpoch(), Commit: r.numbers[root.GetBranches()[0].GetCommit()],
		}}
	}
	var writes []history.Write
	for _, revision := range slices.Sorted(maps.Keys(changes)) {
		writes = append(writes, changes[revision])
	}
	w.must(w.history.Written(r.name, writes))
}

// packs counts the shards that several repos shared.
func (w *workload) packs() (n int) {
	for _, repos := range w.holders {
		if len(slices.Compact(slices.Sorted(slices.Values(repos)))) > 1 {
			n++
		}
	}
	return n
}

// events returns all changes that a key of the catalog ever had.
func (w *workload) events(key string) (events []*clientv3.Event) {
	w.t.Helper()
	_, etcd := w.catalog()
	key = catalog.DefaultPrefix + key
	now, err := etcd.Get(w.t.Context(), key)
	w.must(err)
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	watch := etcd.Watch(ctx, key, clientv3.WithRev(1))
	// etcd reports progress only to watches that have caught up, and drops other requests for it. A
	// key without events is in no other answer.
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for end := time.After(testrun.Patience); ; {
		select {
		case resp := <-watch:
			w.must(resp.Err())
			events = append(events, resp.Events...)
			if resp.Header.Revision >= now.Header.Revision {
				return events
			}
		case <-again.C:
			w.must(etcd.RequestProgress(ctx))
		case <-end:
			w.t.Fatalf("etcd does not report all events of %s", key)
		}
	}
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
