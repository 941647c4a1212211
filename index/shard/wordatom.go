package shard

import (
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/rank"
)

// wordHits are the blobs in which an expression whose matches are within words has some.
// They are made once for a search and not changed.
type wordHits struct {
	words   []wordMatch
	tallies []tally
	blobs   []blobTally
}

// wordHits finds them, once for all parts of the search.
func (s *search) wordHits(m *matching) (*wordHits, error) {
	if h, ok := s.hits[m]; ok {
		return h, nil
	}
	h := &wordHits{}
	var err error
	if h.words, err = s.matchWords(nil, m.matcher, m.needs); err != nil {
		return nil, err
	}
	if h.tallies, err = s.tallies(h.words, false); err != nil {
		return nil, err
	}
	n := len(h.tallies)
	if h.tallies, err = s.opaqueTallies(h.tallies, m); err != nil {
		return nil, err
	}
	if len(h.tallies) > n {
		slices.SortFunc(h.tallies, func(a, b tally) int { return int(a.superblock) - int(b.superblock) })
	}
	if h.blobs, err = s.byBlob(h.tallies); err != nil {
		return nil, err
	}
	s.hits[m] = h
	return h, nil
}

// wordAtom finds a text within the words of documents. Which blobs have how many
// matches is known before any is looked at; only what is shown is read.
type wordAtom struct {
	*matching
	s    *search
	hits *wordHits
	next int // index in blobs of the first that was not passed
	// keep is how many spans are wanted of a document, 0 for all.
	keep   int
	ranges []span
}

func (a *wordAtom) plan() (plan, error) {
	return plan{blobs: &wordBlobs{blobs: a.hits.blobs}, estimate: uint64(len(a.hits.blobs))}, nil
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

// seekBlob returns the index, not below at, of the first blob that is at least from. It
// gallops.
func seekBlob(blobs []blobTally, at int, from uint32) int {
	if at == len(blobs) || blobs[at].blob >= from {
		return at
	}
	step := 1
	for at+step < len(blobs) && blobs[at+step].blob < from {
		at += step
		step *= 2
	}
	i, _ := slices.BinarySearchFunc(blobs[at+1:min(at+step+1, len(blobs))], from,
		func(b blobTally, from uint32) int { return int(b.blob) - int(from) })
	return at + 1 + i
}

func (a *wordAtom) cost() uint64 { return costColumn }

// tally returns what is known of a document's content, nil if it has no match.
func (a *wordAtom) tally(d *document) *blobTally {
	blobs := a.hits.blobs
	if a.next > 0 && blobs[a.next-1].blob >= d.blob {
		a.next = 0 // it goes back, to show what was found
	}
	a.next = seekBlob(blobs, a.next, d.blob)
	if a.next == len(blobs) || blobs[a.next].blob != d.blob {
		return nil
	}
	return &blobs[a.next]
}

func (a *wordAtom) matches(d *document) (bool, error) { return a.tally(d) != nil, nil }

// gather counts the matches of a document, or adds their ranges.
func (a *wordAtom) gather(d *document, g *gathered) error {
	if !g.counting {
		spans, err := a.spans(d)
		for _, s := range spans {
			g.best = max(g.best, s.quality)
		}
		g.content = append(g.content, spans...)
		return err
	}
	if b := a.tally(d); b != nil {
		g.more += int(b.matches)
		g.best = max(g.best, b.quality)
		if b.opaque {
			g.opaque++
		}
	}
	return nil
}

// spans reads where the matches are in a document that has some: all, or the first ones
// that are wanted.
func (a *wordAtom) spans(d *document) ([]span, error) {
	a.ranges = a.ranges[:0]
	b := a.tally(d)
	if b == nil {
		return nil, nil
	}
	first, length, err := a.s.content.Span(d.blob)
	if err != nil {
		return nil, err
	}
	end := first + (length+docstore.SuperblockSize-1)/docstore.SuperblockSize
	add := func(start, end uint32, quality rank.Quality) bool {
		a.ranges = append(a.ranges, span{start, end, quality})
		return a.keep == 0 || len(a.ranges) < a.keep
	}
	if b.opaque {
		err := a.s.wordRanges(a.matching, wordPart{blob: d.blob, to: end - first}, add)
		return a.ranges, err
	}
	for tallies := a.hits.tallies[b.first:]; len(tallies) > 0 && tallies[0].superblock < end; {
		n := 1
		for n < len(tallies) && tallies[n].superblock < end && tallies[n].superblock == tallies[n-1].superblock+1 {
			n++
		}
		part := wordPart{blob: d.blob, from: tallies[0].superblock - first, to: tallies[n-1].superblock + 1 - first}
		if err := a.s.wordRanges(a.matching, part, add); err != nil {
			return nil, err
		}
		if a.keep > 0 && len(a.ranges) == a.keep {
			break
		}
		tallies = tallies[n:]
	}
	return a.ranges, nil
}
