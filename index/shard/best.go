package shard

import (
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/rank"
)

// hit is a document that matches, before it is made ready to be shown.
type hit struct {
	doc, blob uint32
	repo      int
	score     float64
	features  rank.Document
	matches   int
	spans     []span // the first of them
	onPath    bool   // spans are in the path
}

// compareHits is the total order within one shard: documents are numbered in
// order of repo, path and blob.
func compareHits(a, b hit) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.doc, b.doc))
}

// best keeps the first limit hits in the total order. It holds up to twice as
// many and sorts when full, which costs less per hit than a heap.
type best struct {
	limit int
	hits  []hit
	worst *hit // once limit hits are kept: what does not come before it is not among the best
}

// admits reports whether h may be among the best.
func (b *best) admits(h hit) bool {
	return b.limit > 0 && (b.worst == nil || compareHits(h, *b.worst) < 0)
}

func (b *best) add(h hit) {
	if b.hits = append(b.hits, h); len(b.hits) >= 2*b.limit {
		b.cut()
	}
}

func (b *best) cut() {
	slices.SortFunc(b.hits, compareHits)
	if len(b.hits) >= b.limit {
		clear(b.hits[b.limit:])
		b.hits = b.hits[:b.limit]
		worst := b.hits[b.limit-1]
		b.worst = &worst
	}
}

// sorted returns the best hits in the total order.
func (b *best) sorted() []hit {
	if len(b.hits) > 0 {
		b.cut()
	}
	return b.hits
}
