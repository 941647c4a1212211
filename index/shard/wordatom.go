package shard

import (
	"sort"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/rank"
)

// wordAtom finds a text within the words of documents. It knows how many matches each blob has
// before looking at any, and reads only what is shown.
type wordAtom struct {
	*matching
	s    *search
	hits *wordHits
	next int // index of the first blob that was not passed
	// keep is the number of spans wanted in a document, 0 for all.
	keep int
	// spans are the ranges of the document read last.
	spans spanList
}

func (a *wordAtom) plan() (plan, error) {
	return plan{blobs: &wordBlobs{blobs: a.hits.blobs}, estimate: uint64(len(a.hits.blobs)), counted: true}, nil
}

// wordBlobs has the blobs of hits as candidates.
type wordBlobs struct {
	blobs []blobTally
	next  int
}

func (b *wordBlobs) seek(from uint32) (uint32, bool, error) {
	b.next = seekBlob(b.blobs, b.next, from)
	if b.next == len(b.blobs) {
		return 0, false, nil
	}
	return b.blobs[b.next].blob, true, nil
}

// seekBlob returns the index, not below at, of the first blob that is at least from.
func seekBlob(blobs []blobTally, at int, from uint32) int {
	return seek(blobs, at, from, func(b *blobTally) uint32 { return b.blob })
}

// seek returns the index, not below at, of the first element whose number is at least from. Numbers
// ascend. It uses a galloping search, since from is mostly near.
func seek[E any](list []E, at int, from uint32, number func(*E) uint32) int {
	if at == len(list) || number(&list[at]) >= from {
		return at
	}
	step := 1
	for at+step < len(list) && number(&list[at+step]) < from {
		at += step
		step *= 2
	}
	rest := list[at+1 : min(at+step+1, len(list))]
	return at + 1 + sort.Search(len(rest), func(i int) bool { return number(&rest[i]) >= from })
}

func (a *wordAtom) cost() uint64 { return costColumn }

// tally returns what is known of a document's content; nil if it has no match.
func (a *wordAtom) tally(d *document) *blobTally {
	blobs := a.hits.blobs
	if a.next > 0 && blobs[a.next-1].blob >= d.blob {
		a.next = 0 // back to the start, to show what was found
	}
	a.next = seekBlob(blobs, a.next, d.blob)
	if a.next == len(blobs) || blobs[a.next].blob != d.blob {
		return nil
	}
	return &blobs[a.next]
}

func (a *wordAtom) matches(d *document) (bool, error) { return a.tally(d) != nil, nil }

// gather counts the matches of a document or adds their ranges.
func (a *wordAtom) gather(d *document, g *gathered) (rank.Counts, error) {
	b := a.tally(d)
	if b == nil {
		return rank.Counts{}, nil
	}
	in := inWords{a.matching, a.hits.tallies[b.first:], b.opaque}
	if g.counting {
		g.more += b.counts.All()
		g.inWords = append(g.inWords, in)
		if b.opaque {
			g.opaque++
		}
		if a.hits.anywhere {
			g.opaque++ // as if there were one more atom
		}
		return b.counts, nil
	}
	length, err := a.s.content.Len(d.blob)
	if err != nil {
		return rank.Counts{}, err
	}
	if err := in.read(a.s, d.blob, a.keep, (length+docstore.SuperblockSize-1)/docstore.SuperblockSize, &a.spans); err != nil {
		return rank.Counts{}, err
	}
	if a.spans.n > 0 {
		g.content = append(g.content, &a.spans)
	}
	return b.counts, nil
}
