package fanout

import (
	"slices"
	"sync"

	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Directory maps each shard to the searchers that should hold it, for one membership.
// It is safe for concurrent use.
type Directory struct {
	replication int
	targets     map[membership.ID]Target
	// active searchers take new shards; those in everybody answer.
	active, everybody []membership.Member

	mu sync.RWMutex
	// ranked caches the candidates of shards.
	ranked map[searchapi.Digest][]Target
}

// maxRanked bounds the cache in shards, at some 250 bytes each.
const maxRanked = 1 << 16

// NewDirectory is the directory of the live searchers, for a router in a zone; empty: in none.
func NewDirectory(searchers []*catalogv1.Searcher, replication int, zone string) *Directory {
	d := &Directory{
		replication: replication, targets: make(map[membership.ID]Target, len(searchers)), ranked: make(map[searchapi.Digest][]Target),
	}
	for _, s := range searchers {
		d.targets[s.Id] = Target{ID: s.Id, Address: s.Address, Near: zone != "" && s.Zone == zone}
		member := membership.Member{ID: s.Id, Zone: s.Zone}
		d.everybody = append(d.everybody, member)
		if !s.Draining {
			d.active = append(d.active, member)
		}
	}
	return d
}

// Near reports whether the searcher at an address is in the router's zone.
func (d *Directory) Near(address string) bool {
	for _, t := range d.targets {
		if t.Address == address {
			return t.Near
		}
	}
	return false
}

// Candidates are the searchers to ask for a shard, best first. After the searchers on
// which it is placed come those on which it was placed before others joined or started
// to drain: they keep a shard for a while. The caller must not change the slice.
func (d *Directory) Candidates(digest searchapi.Digest) []Target {
	d.mu.RLock()
	known, ok := d.ranked[digest]
	d.mu.RUnlock()
	if ok {
		return known
	}
	targets := d.rank(digest)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ranked) >= maxRanked {
		clear(d.ranked) // many of them are of shards that are gone
	}
	d.ranked[digest] = targets
	return targets
}

// rank computes the candidates of a shard, at the cost of a hash for each searcher.
func (d *Directory) rank(digest searchapi.Digest) []Target {
	ids := membership.Place(digest, d.active, 2*d.replication)
	if len(d.active) < len(d.everybody) {
		for _, id := range membership.Place(digest, d.everybody, d.replication) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	targets := make([]Target, len(ids))
	for i, id := range ids {
		targets[i] = d.targets[id]
	}
	return slices.Clip(targets)
}
