package serve

import (
	"sync"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// best merges what was found in the shards searched so far, so that only the best files
// of all shards are shown. It is safe for concurrent use.
type best struct {
	mu      sync.Mutex
	ranking *search.Ranking
	parts   []part
	// explanation is nil unless the request wants one. It covers the shards without a part.
	explanation *searchv1.Explanation
	// facets are those of the request, in their order.
	facets []search.FacetCounts
}

// part is what was found in one shard. It holds the shard open until release.
type part struct {
	number  int
	handle  *shardcache.Handle
	planned searchapi.Shard
	found   *search.Found
}

func newBest(o *searchv1.SearchOptions) *best {
	b := &best{ranking: search.NewRanking(searchapi.FilesOf(o), int64(o.MaxBytes)), facets: make([]search.FacetCounts, len(o.Facets))}
	if o.Explain {
		b.explanation = &searchv1.Explanation{}
	}
	return b
}

// floor is the worst of the best files so far: files after it cannot be shown. It is nil
// while there are fewer than are wanted.
func (b *best) floor() *search.Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ranking.Floor()
}

// add adds what was found in one shard, and keeps the shard open if any of it is among the best.
func (b *best) add(h *shardcache.Handle, planned searchapi.Shard, found *search.Found, counted []search.FacetCounts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range counted {
		b.facets[i].Merge(&counted[i])
	}
	number := b.ranking.Add(found)
	if b.ranking.Count(number) > 0 {
		b.parts = append(b.parts, part{number, h.Share(), planned, found})
	} else {
		b.explain(planned.Digest, found)
	}
}

// explain adds the explanation of one shard, if there is one.
func (b *best) explain(shard searchapi.Digest, found *search.Found) {
	if b.explanation != nil && found.Explanation != nil {
		searchapi.AddExplanation(b.explanation, searchapi.Explanation(found.Explanation, shard))
	}
}

// count is how many hits of a part are among the best.
func (b *best) count(p *part) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ranking.Count(p.number)
}

func (b *best) shown(p *part, r *search.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ranking.Shown(p.number, r)
	if p.found.Explanation != nil {
		p.found.Explanation.AddShown(r.Explanation)
	}
}

func (b *best) drop(p *part) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ranking.Drop(p.number)
	p.found.Explanation = nil
}

// answer is what was found and shown of all shards.
type answer struct {
	*search.Result
	explanation *searchv1.Explanation // nil unless one is asked for
	facets      []search.FacetCounts
}

func (b *best) answer() *answer {
	for i := range b.parts {
		b.explain(b.parts[i].planned.Digest, b.parts[i].found)
	}
	return &answer{b.ranking.Result(), b.explanation, b.facets}
}

// release closes the shards of all parts.
func (b *best) release() {
	for i := range b.parts {
		b.parts[i].handle.Release()
	}
}
