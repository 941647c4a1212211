package cluster

import (
	"testing"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestNATSDataWiped: NATS loses all its data, and with it the wake-ups of acknowledged
// requests. Every request is indexed nevertheless, because etcd holds them.
func TestNATSDataWiped(t *testing.T) {
	c := newCluster(t, layout{indexers: 2})
	repos := c.newRepositories("repo", 6)
	c.index(repos[:2]...)
	for _, n := range c.indexers {
		n.kill(t) // a paused one would still have jobs in flight to it
	}
	var puts []*ingestv1.PutRepoResponse
	for _, r := range repos[2:] {
		puts = append(puts, c.put(r))
	}
	c.discard(c.nats[0])
	c.must(c.startNATS(t.Context()))
	for _, n := range c.indexers {
		n.restart(t)
	}
	for _, put := range puts {
		if s := c.published(put); s.GetGeneration() != 1 {
			t.Errorf("%s has generation %d", put.GetName(), s.GetGeneration())
		}
	}
	c.expect(repos...)
}

// TestNATSReplicaKilled: one of three replicas is killed and comes back, and then another
// one, while repos are indexed.
func TestNATSReplicaKilled(t *testing.T) {
	c := newCluster(t, layout{nats: 3, indexers: 2})
	repos := c.newRepositories("repo", 3)
	c.index(repos...)
	first := c.rng.IntN(len(c.nats))
	for i := range 2 {
		victim := c.nats[(first+i)%len(c.nats)]
		victim.kill(t)
		repos[i].commit(c.rng, 3, 20)
		c.index(repos[i])
		victim.restart(t)
		c.expect(repos...)
		c.healthyNATS(victim)
	}
}
