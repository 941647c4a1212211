package cluster

import (
	"testing"
	"time"
)

// trouble makes one or two members of the cluster fail at the same time, in the ways that
// machines fail, and then heals them.
func (c *cluster) trouble() {
	c.t.Helper()
	groups := c.rng.Perm(len(c.victims()))
	heal := c.harm(groups[0])
	if c.rng.IntN(3) == 0 {
		c.wait(time.Second, 2*time.Second)
		other := c.harm(groups[1])
		c.wait(time.Second, 3*time.Second)
		other()
	}
	c.wait(time.Second, 3*time.Second)
	heal()
	c.wait(0, 2*time.Second)
}

// wait waits for a random time, in which a lease may or may not end.
func (c *cluster) wait(least, most time.Duration) {
	time.Sleep(least + time.Duration(c.rng.Int64N(int64(most-least))))
}

// victims returns the groups. At most one member of a group is down at a time.
func (c *cluster) victims() [][]*node {
	return [][]*node{c.etcd, c.nats, c.indexers, c.searchers, c.routers}
}

// harm kills, pauses or cuts off a member of a group, for etcd mostly the leader, and returns
// the function that heals it.
func (c *cluster) harm(group int) (heal func()) {
	c.t.Helper()
	nodes := c.victims()[group]
	victim := nodes[c.rng.IntN(len(nodes))]
	if group == 0 && c.rng.IntN(4) > 0 {
		victim = c.etcdLeader()
	}
	harms := []struct{ do, undo func(*node, *testing.T) }{
		{(*node).kill, (*node).restart}, {(*node).pause, (*node).unpause}, {(*node).disconnect, (*node).connect},
	}
	h := harms[c.rng.IntN(len(harms))]
	h.do(victim, c.t)
	return func() { h.undo(victim, c.t) }
}
