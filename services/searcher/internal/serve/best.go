package serve

import (
	"sync"

	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/searchwire"
	"github.com/trawl-search/trawl/services/searcher/internal/store"
)

// best is what was found in the shards searched so far, for the best files of all to be
// shown. It is safe for concurrent use.
type best struct {
	mu      sync.Mutex
	ranking *shard.Ranking
	parts   []part
}

// part is what was found in one shard, whose use lasts until it is released.
type part struct {
	number  int
	handle  *store.Handle
	planned searchwire.Shard
	found   *shard.Found
}

func newBest(maxFiles int, maxBytes int64) *best {
	return &best{ranking: shard.NewRanking(maxFiles, maxBytes)}
}

// floor is the place after which files are of no use any more, nil when there is none yet.
func (b *best) floor() *shard.Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ranking.Floor()
}

// add takes what was found in one shard, and shares its use if some of it is among the best.
func (b *best) add(h *store.Handle, planned searchwire.Shard, found *shard.Found) {
	b.mu.Lock()
	defer b.mu.Unlock()
	number := b.ranking.Add(found)
	if b.ranking.Count(number) > 0 {
		b.parts = append(b.parts, part{number, h.Share(), planned, found})
	}
}

// count is how many hits of a part are among the best.
func (b *best) count(p *part) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ranking.Count(p.number)
}

func (b *best) shown(p *part, r *shard.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ranking.Shown(p.number, r)
}

func (b *best) drop(p *part) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ranking.Drop(p.number)
}

// release ends the use of the shards.
func (b *best) release() {
	for i := range b.parts {
		b.parts[i].handle.Release()
	}
}
