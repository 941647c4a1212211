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
	counted   bool   // there are no spans yet, though there are matches
}

// compareHits is the total order within one shard: documents are numbered in
// order of repo, path and blob.
func compareHits(a, b hit) int { return compareScored(a.score, a.doc, b.score, b.doc) }

func compareScored(scoreA float64, docA uint32, scoreB float64, docB uint32) int {
	return cmp.Or(cmp.Compare(scoreB, scoreA), cmp.Compare(docA, docB))
}

// best keeps the first limit hits in the total order. The last of them is at
// hand, since it decides what is still worth looking at: a heap, the last first.
type best struct {
	limit int
	hits  []hit
}

func (b *best) full() bool { return len(b.hits) == b.limit }

// admits reports whether a document with that score is among the best so far.
func (b *best) admits(score float64, doc uint32) bool {
	return !b.full() || b.limit > 0 && compareScored(score, doc, b.hits[0].score, b.hits[0].doc) < 0
}

// add keeps h, which is admitted, with a copy of its spans. What it pushes out
// leaves its memory to it, so that memory is bounded by the limit.
func (b *best) add(h hit) {
	if !b.full() {
		h.spans = slices.Clone(h.spans)
		b.hits = append(b.hits, h)
		b.rise(len(b.hits) - 1)
		return
	}
	h.spans = append(b.hits[0].spans[:0], h.spans...)
	b.hits[0] = h
	b.sink(0)
}

func (b *best) rise(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if compareHits(b.hits[i], b.hits[parent]) < 0 {
			return
		}
		b.hits[i], b.hits[parent] = b.hits[parent], b.hits[i]
		i = parent
	}
}

func (b *best) sink(i int) {
	for {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(b.hits); child++ {
			if compareHits(b.hits[child], b.hits[last]) > 0 {
				last = child
			}
		}
		if last == i {
			return
		}
		b.hits[i], b.hits[last] = b.hits[last], b.hits[i]
		i = last
	}
}

// sorted returns the best hits in the total order; none can be added after.
func (b *best) sorted() []hit {
	slices.SortFunc(b.hits, compareHits)
	return b.hits
}
