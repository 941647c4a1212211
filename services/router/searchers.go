package router

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/server"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// searchers follows the live searchers. It is safe for concurrent use.
type searchers struct {
	*fanout.Conns
	peers       *fanout.Peers
	replication int
	zone        string
	directory   atomic.Pointer[fanout.Directory]
	// list is what the directory was made of. It is for the goroutine that follows.
	list []*catalogv1.Searcher
}

// newSearchers is for a router in a zone; empty: in none.
func newSearchers(conns *fanout.Conns, peers *fanout.Peers, replication int, zone string) *searchers {
	s := &searchers{Conns: conns, peers: peers, replication: replication, zone: zone}
	s.directory.Store(fanout.NewDirectory(nil, replication, zone))
	return s
}

// Candidates are the searchers to ask for a shard, best first.
func (s *searchers) Candidates(d searchapi.Digest) []fanout.Target {
	return s.directory.Load().Candidates(d)
}

// near reports whether the searcher at an address is in the router's zone.
func (s *searchers) near(address string) bool { return s.directory.Load().Near(address) }

// follow updates the directory, and the condition that a searcher is live, until ctx
// ends.
func (s *searchers) follow(ctx context.Context, members *membership.Members, live *server.Condition) {
	live.Unmet("the searchers were not listed yet")
	if _, err := members.WaitListed(ctx); err != nil {
		return
	}
	sweep := time.NewTicker(time.Minute)
	defer sweep.Stop()
	for {
		now := members.Snapshot()
		s.update(now.Searchers)
		if len(now.Searchers) == 0 {
			live.Unmet("no searcher is registered")
		} else {
			live.Met()
		}
		select {
		case <-now.Changed():
		case <-sweep.C:
		case <-ctx.Done():
			return
		}
	}
}

// update makes another directory only of another list: it would have to rank the searchers of all shards anew.
func (s *searchers) update(list []*catalogv1.Searcher) {
	if !slices.Equal(list, s.list) {
		s.list = list
		s.directory.Store(fanout.NewDirectory(list, s.replication, s.zone))
	}
	addresses, ids := make(map[string]bool, len(list)), make(map[string]bool, len(list))
	for _, m := range list {
		addresses[m.Address], ids[m.Id] = true, true
	}
	s.peers.Keep(ids)
	_ = s.Keep(addresses, time.Now()) // an error of closing an unused connection does not matter
}
