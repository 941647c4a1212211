package cluster

import "testing"

// TestRollingRestart: every role is stopped and started, one after the other. Every answer
// meanwhile is complete.
func TestRollingRestart(t *testing.T) {
	c := newCluster(t, layout{indexers: 2, searchers: 3, routers: 2})
	repos := c.newRepositories("repo", 6)
	c.index(repos...)
	c.expect(repos...)
	stop := c.asking(queryTime, repos...)
	for _, nodes := range [][]*node{c.searchers, c.routers, c.indexers} {
		for _, n := range nodes {
			n.stop(t)
			n.restart(t)
			n.ready(t)
		}
	}
	l := stop()
	if l.incomplete > 0 || len(l.failed) > 0 || l.complete == 0 {
		t.Error("the restart was noticed")
	}
	repos[0].commit(c.rng, 3, 20)
	c.index(repos[0])
	c.expect(repos...)
}
