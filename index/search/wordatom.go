package search

import (
	"slices"
	"sort"

	"github.com/trawl-search/trawl/index/rank"
)

// wordAtom finds a text within the words of documents. It knows how many matches each blob has before looking at any, and reads only what is
// shown.
type wordAtom struct {
	*matching
	s    *search
	hits *wordHits
	next int // index of the first blob that was not passed
}

func (a *wordAtom) plan() (plan, error) {
	p := ready(&wordBlobs{blobs: a.hits.blobs}, uint64(len(a.hits.blobs)))
	p.counted = true
	return p, nil
}

// wordBlobs has the blobs of hits as candidates.
type wordBlobs struct {
	blobs []blobTally
	next  int
}

func (b *wordBlobs) seek(from uint32) (uint32, bool, error) {
	b.next = seek(b.blobs, b.next, from, (*blobTally).number)
	if b.next == len(b.blobs) {
		return 0, false, nil
	}
	return b.blobs[b.next].blob, true, nil
}

func (b *wordBlobs) evidence() evidence {
	t := &b.blobs[b.next]
	return evidence{content: t.content, sure: true, counted: true, matches: t.counts.All()}
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

// seekAgain is seek if from may also be lower than in the last call, whose result is at. It is fast if calls mostly ascend.
func seekAgain[E any](list []E, at int, from uint32, number func(*E) uint32) int {
	if at > 0 && number(&list[at-1]) >= from {
		at = 0
	}
	return seek(list, at, from, number)
}

func (a *wordAtom) cost() uint64 { return costColumn }

// tally returns what is known of a blob's content; nil if nothing is.
func (a *wordAtom) tally(blob uint32) *blobTally {
	blobs := a.hits.blobs
	a.next = seekAgain(blobs, a.next, blob, (*blobTally).number)
	if a.next == len(blobs) || blobs[a.next].blob != blob {
		return nil
	}
	return &blobs[a.next]
}

func (a *wordAtom) matches(d *document) (bool, error) { return a.tally(d.blob) != nil, nil }

// gather counts the matches of a document, and says where they are.
func (a *wordAtom) gather(d *document, g *gathered) (rank.Counts, error) {
	t := a.tally(d.blob)
	if t == nil {
		return rank.Counts{}, nil
	}
	g.matches += t.counts.All()
	g.inWords = append(g.inWords, inWords{a.matching, a.hits.tallies[t.first:], t.opaque})
	return t.counts, nil
}

// readInWords finds the ranges of atoms in a blob whose matches were only counted, and adds them to those that were gathered: those in the words
// that start in the first superblocks, up to that number.
func (s *search) readInWords(blob uint32, atoms []inWords, to uint32) error {
	s.showing = slices.Grow(s.showing[:0], len(atoms))[:len(atoms)]
	for i := range atoms {
		if err := atoms[i].read(s, blob, to, &s.showing[i]); err != nil {
			return err
		}
		s.gathered.content = append(s.gathered.content, &s.showing[i])
	}
	return nil
}
