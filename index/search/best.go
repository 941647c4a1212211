package search

import (
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/heap"
	"github.com/trawl-search/trawl/index/rank"
)

// hit is a document that matches, not yet made ready to be shown.
type hit struct {
	doc, blob uint32
	repo      int
	score     float64
	features  rank.Document
	matches   int
	marks     []byte    // the first ones, packed
	onPath    bool      // marks are in the path
	inWords   []inWords // where the counted matches are; there are no marks yet
	ranges    int       // how many will be shown
}

// compareHits is the total order within one shard: documents are numbered in
// order of repo, path and blob.
func compareHits(a, b hit) int { return compareScored(a.score, a.doc, b.score, b.doc) }

func compareScored(scoreA float64, docA uint32, scoreB float64, docB uint32) int {
	return cmp.Or(cmp.Compare(scoreB, scoreA), cmp.Compare(docA, docB))
}

func lastFirst(a, b *hit) int { return compareHits(*b, *a) }

// leastSize is the least that FileMatch.Size will be.
func (h *hit) leastSize() int64 { return fileSize + rangeSize*int64(h.ranges) }

// best keeps the first limit hits in the total order, or fewer when these reach
// the limit of bytes. It is a heap with the last hit first, because that one
// decides which documents are still worth looking at.
type best struct {
	limit int
	hits  []hit
	// size is the sum of the hits' least sizes. Once it reaches maxBytes, no
	// hit after the last one has room. A maxBytes of 0 sets no limit.
	size, maxBytes int64
	// cut is set when a hit was left out for lack of room.
	cut bool
}

// full reports whether no hit after the last one has room.
func (b *best) full() bool { return len(b.hits) == b.limit || b.stuffed() }

// stuffed reports whether the hits have reached the limit of bytes.
func (b *best) stuffed() bool { return b.maxBytes > 0 && b.size >= b.maxBytes }

// admits reports whether a document with this score is among the best so far.
func (b *best) admits(score float64, doc uint32) bool {
	return !b.full() || b.limit > 0 && compareScored(score, doc, b.hits[0].score, b.hits[0].doc) < 0
}

// add keeps h, which the caller knows to be admitted, with a copy of its lists.
// It reuses the memory of the hit that h pushes out, so that the limits bound
// memory.
func (b *best) add(h hit) {
	b.size += h.leastSize()
	if len(b.hits) < b.limit {
		h.marks, h.inWords = slices.Clone(h.marks), slices.Clone(h.inWords)
		h.features.Terms = slices.Clone(h.features.Terms)
		b.hits = heap.Push(b.hits, h, lastFirst)
	} else {
		b.size -= b.hits[0].leastSize()
		h.marks = append(b.hits[0].marks[:0], h.marks...)
		h.inWords = append(b.hits[0].inWords[:0], h.inWords...)
		h.features.Terms = append(b.hits[0].features.Terms[:0], h.features.Terms...)
		b.hits[0] = h
		heap.Fix(b.hits, 0, lastFirst)
	}
	for len(b.hits) > 1 && b.maxBytes > 0 && b.size-b.hits[0].leastSize() >= b.maxBytes {
		b.cut = true
		b.size -= b.hits[0].leastSize()
		b.hits = heap.Pop(b.hits, lastFirst)
	}
}

// sorted returns the best hits in the total order; no hit can be added
// afterwards.
func (b *best) sorted() []hit {
	slices.SortFunc(b.hits, compareHits)
	return b.hits
}
