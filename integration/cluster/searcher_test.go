package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/integration/cluster/faults"
	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// outage is how long searchers are down while queries run: long enough for their leases to
// end and placement to change.
const outage = 6 * time.Second

// TestSearchersFail makes single searchers, and then all of them, fail in the ways that
// machines fail.
func TestSearchersFail(t *testing.T) {
	c := newCluster(t, layout{searchers: 3, proxiedSearchers: true, searcherArgs: []string{"--grace", "3s"}})
	repos := c.newRepositories("repo", 6)
	c.index(repos...)
	c.expect(repos...)
	t.Run("one is killed", func(t *testing.T) { killedSearcher(t, c.within(t), repos) })
	t.Run("one is paused", func(t *testing.T) { pausedSearcher(t, c.within(t), repos) })
	t.Run("one is cut off from the router", func(t *testing.T) { cutOffSearcher(t, c.within(t), repos) })
	t.Run("connections are slow and break", func(t *testing.T) { badConnections(t, c.within(t), repos) })
	t.Run("all are gone", func(t *testing.T) { allSearchersGone(t, c.within(t), repos) })
}

// victim picks a searcher at random.
func (c *cluster) victim(t *testing.T) (int, *node) {
	t.Helper()
	i := c.rng.IntN(len(c.searchers))
	t.Logf("the victim is searcher%d", i)
	return i, c.searchers[i]
}

// killedSearcher: when a connection is refused the other replica answers, so nothing is
// missing from any answer.
func killedSearcher(t *testing.T, c *cluster, repos []*repository) {
	_, victim := c.victim(t)
	stop := c.asking(queryTime, repos...)
	victim.kill(t)
	time.Sleep(outage)
	victim.restart(t)
	victim.ready(t)
	l := stop()
	if l.incomplete > 0 || len(l.failed) > 0 || l.complete == 0 {
		t.Error("a killed searcher was missed")
	}
	c.expect(repos...)
}

// pausedSearcher: a searcher that hangs refuses no connection. Routers notice its silence, and
// either the other replica answers in time or the answer names what is missing.
func pausedSearcher(t *testing.T, c *cluster, repos []*repository) {
	_, victim := c.victim(t)
	stop := c.asking(hangDeadline, repos...)
	victim.pause(t)
	time.Sleep(outage)
	victim.unpause(t)
	victim.ready(t)
	if l := stop(); l.unanswered() > 0 || l.complete == 0 {
		t.Error("queries failed while a searcher was paused")
	}
	c.expect(repos...)
}

// hangDeadline is the deadline of queries while a searcher hangs. It is far more than a second
// replica needs, and less than any lease.
const hangDeadline = 2 * time.Second

// cutOffSearcher: the searcher runs and keeps its lease, but the router cannot reach it.
func cutOffSearcher(t *testing.T, c *cluster, repos []*repository) {
	i, _ := c.victim(t)
	stop := c.asking(hangDeadline, repos...)
	c.toSearcher[i].Set(faults.TCPFault{Cut: true})
	time.Sleep(outage)
	c.toSearcher[i].Set(faults.TCPFault{})
	if l := stop(); l.unanswered() > 0 || l.complete == 0 {
		t.Error("queries failed while a searcher was cut off")
	}
	c.expect(repos...)
}

// badConnections: routers retry at the other replica after a reset, and hedge or wait out
// delays. Nothing is missing from any answer.
func badConnections(t *testing.T, c *cluster, repos []*repository) {
	i, _ := c.victim(t)
	stop := c.asking(queryTime, repos...)
	for _, f := range []faults.TCPFault{{Reset: true}, {Delay: 100 * time.Millisecond}, {BytesPerSecond: 20_000}} {
		c.toSearcher[i].Set(f)
		time.Sleep(2 * time.Second)
		c.toSearcher[i].Set(faults.TCPFault{})
		time.Sleep(time.Second)
	}
	if l := stop(); l.incomplete > 0 || len(l.failed) > 0 || l.complete == 0 {
		t.Error("bad connections to one searcher were noticed")
	}
}

// allSearchersGone: answers name every shard with its repo. A caller that requires a complete
// answer gets an error that names them too.
func allSearchersGone(t *testing.T, c *cluster, repos []*repository) {
	for _, n := range c.searchers {
		n.kill(t)
	}
	testrun.Eventually(t, "every repo is named as uncovered", func(ctx context.Context) error {
		answer, err := c.clients[0].query(ctx, heron, queryTime, nil)
		if err != nil {
			return err
		}
		if err := honest(answer, repos); err != nil {
			t.Fatal(err)
		}
		if n := len(uncovered(answer.GetCoverage())); n != len(repos) || len(answer.GetFiles()) > 0 {
			return fmt.Errorf("%d of %d repos are uncovered", n, len(repos))
		}
		return nil
	})
	_, err := c.clients[0].query(t.Context(), heron, queryTime, &searchv1.SearchOptions{RequireComplete: true})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a complete answer was required, and the outcome is %v", err)
	}
	named := 0
	for _, d := range status.Convert(err).Details() {
		if cov, ok := d.(*searchv1.Coverage); ok {
			named = len(uncovered(cov))
		}
	}
	if named != len(repos) {
		t.Errorf("the error names %d repos, want %d", named, len(repos))
	}
	for _, n := range c.searchers {
		n.restart(t)
	}
	c.expect(repos...)
}
