package shardcache

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unique"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// Own are the shards of the roots that rendezvous hashing places on a searcher. They follow the roots and the members: a change
// of the roots costs as much as the chunks that it changes, one of the members as much as all shards. It is for one goroutine.
type Own struct {
	self        membership.Member
	replication int
	chunks      []*catalog.Chunk
	members     []membership.Member
	// uses are the numbers of chunks that name each shard, and refs those of the shards that are placed here.
	uses map[unique.Handle[catalog.Shard]]int
	refs map[unique.Handle[catalog.Shard]]Ref
}

// NewOwn has no shards yet.
func NewOwn(self membership.Member, replication int) *Own {
	return &Own{self: self, replication: replication, uses: make(map[unique.Handle[catalog.Shard]]int), refs: make(map[unique.Handle[catalog.Shard]]Ref)}
}

// Refs are the shards in any order.
func (o *Own) Refs() []Ref { return slices.Collect(maps.Values(o.refs)) }

// Follow takes in roots and members. A searcher that is not among these takes what will be its own once it is. Shards with an
// invalid digest are left out and reported in the error, once.
func (o *Own) Follow(chunks []*catalog.Chunk, members []membership.Member) error {
	registered := func(m membership.Member) bool { return m.ID == o.self.ID }
	if !slices.ContainsFunc(members, registered) {
		members = append(slices.Clone(members), o.self)
	}
	if !slices.Equal(members, o.members) {
		o.chunks, o.members = nil, members
		clear(o.uses)
		clear(o.refs)
	}
	least := min(len(chunks), len(o.chunks))
	head, tail := 0, 0
	for head < least && chunks[head] == o.chunks[head] {
		head++
	}
	for tail < least-head && chunks[len(chunks)-1-tail] == o.chunks[len(o.chunks)-1-tail] {
		tail++
	}
	var bad []error
	for _, c := range chunks[head : len(chunks)-tail] {
		for _, shard := range c.Shards() {
			if o.uses[shard]++; o.uses[shard] == 1 {
				bad = append(bad, o.place(shard))
			}
		}
	}
	for _, c := range o.chunks[head : len(o.chunks)-tail] {
		for _, shard := range c.Shards() {
			if o.uses[shard]--; o.uses[shard] == 0 {
				delete(o.uses, shard)
				delete(o.refs, shard)
			}
		}
	}
	o.chunks = chunks
	return errors.Join(bad...)
}

// place adds a shard if it is placed here.
func (o *Own) place(h unique.Handle[catalog.Shard]) error {
	shard := h.Value()
	d, err := searchapi.ParseDigest([]byte(shard.Digest))
	if err != nil {
		return fmt.Errorf("shard %q: %w", shard.Key, err)
	}
	if slices.Contains(membership.Place(d, o.members, o.replication), o.self.ID) {
		o.refs[h] = Ref{Digest: d, Key: shard.Key, Size: int64(shard.SizeBytes)}
	}
	return nil
}
