package search

import (
	"sort"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// wordAtom finds a text within the words of documents. If all words are looked up, it knows how many matches each blob has before looking at
// any, and reads only what is shown. If only whole words are, it reads the text where these do not decide.
type wordAtom struct {
	*matching
	s    *search
	hits *wordHits
	// whole says that hits have only whole words.
	whole bool
	next  int // index of the first blob that was not passed
	// looked is what is known of the last blob whose text was read; atLeast says that it may have more matches.
	looked  blobTally
	valid   bool
	atLeast bool
}

func (a *wordAtom) plan() (plan, error) {
	return plan{blobs: &wordBlobs{blobs: a.hits.blobs, all: !a.whole}, estimate: uint64(len(a.hits.blobs)), counted: true}, nil
}

// wordBlobs has the blobs of hits as candidates.
type wordBlobs struct {
	blobs []blobTally
	next  int
	all   bool // all words were looked up
}

func (b *wordBlobs) seek(from uint32) (uint32, bool, error) {
	b.next = seekBlob(b.blobs, b.next, from)
	if b.next == len(b.blobs) {
		return 0, false, nil
	}
	return b.blobs[b.next].blob, true, nil
}

func (b *wordBlobs) evidence() evidence {
	t := &b.blobs[b.next]
	return evidence{content: t.content, sure: b.all, counted: b.all, matches: t.counts.All()}
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

// tally returns what is known of a blob's content; nil if nothing is.
func (a *wordAtom) tally(blob uint32) *blobTally {
	blobs := a.hits.blobs
	if a.next > 0 && blobs[a.next-1].blob >= blob {
		a.next = 0
	}
	a.next = seekBlob(blobs, a.next, blob)
	if a.next == len(blobs) || blobs[a.next].blob != blob {
		return nil
	}
	return &blobs[a.next]
}

func (a *wordAtom) matches(d *document) (bool, error) {
	t := a.tally(d.blob)
	if !a.whole || t != nil && t.counts[rank.Word] > 0 {
		return t != nil, nil
	}
	err := a.look(d.blob)
	return a.looked.counts.All() > 0, err
}

// gather counts the matches of a document, and says where they are.
func (a *wordAtom) gather(d *document, g *gathered) (rank.Counts, error) {
	t, in := a.tally(d.blob), inWords{matching: a.matching, opaque: true}
	if !a.whole && t != nil {
		in = inWords{a.matching, a.hits.tallies[t.first:], t.opaque}
	} else if a.whole {
		if err := a.look(d.blob); err != nil {
			return rank.Counts{}, err
		}
		t = &a.looked
		g.atLeast = g.atLeast || a.atLeast
	}
	if t == nil || t.counts.All() == 0 {
		return rank.Counts{}, nil
	}
	g.matches += t.counts.All()
	g.inWords = append(g.inWords, in)
	return t.counts, nil
}

// wholeIsEnough reports whether the whole words of a blob decide its score, or its text was read already.
func (a *wordAtom) wholeIsEnough(blob uint32) (bool, error) {
	if !a.whole || a.valid && a.looked.blob == blob {
		return true, nil
	}
	t := a.tally(blob)
	if t == nil || t.opaque || t.content == 0 {
		return false, nil
	}
	length, err := a.s.content.Len(blob)
	whole := int(min(t.counts[rank.Word], rank.Enough))
	return rank.Content(rank.Word, whole, units(length)) >= rank.Content(rank.Partial, rank.Enough, units(length)), err
}

// look counts the matches in a blob: only whole words if no others can score more, otherwise those in its text.
func (a *wordAtom) look(blob uint32) error {
	if a.valid && a.looked.blob == blob {
		return nil
	}
	enough, err := a.wholeIsEnough(blob)
	if err != nil {
		return err
	}
	t := a.tally(blob)
	a.looked, a.atLeast = blobTally{blob: blob, opaque: t != nil && t.opaque}, enough
	whole := uint32(0)
	if t != nil {
		whole = t.counts[rank.Word]
	}
	if a.looked.counts = (rank.Counts{rank.Inside: whole, rank.Partial: whole, rank.Word: whole}); !enough {
		err = a.read(blob, whole)
	}
	a.valid = err == nil
	return err
}

// partRead is how much of a content is read before it is known whether more is needed.
const partRead = 16 << 10

// read counts the matches in the text of a blob, up to where more make no difference. The whole words are known already, except in opaque
// superblocks.
func (a *wordAtom) read(blob, whole uint32) error {
	s, counts := a.s, rank.Counts{}
	length, err := s.content.Len(blob)
	if err != nil {
		return err
	}
	for at, end := 0, uint32(partRead); at < int(length); end *= 2 {
		if counts[rank.Word] >= rank.Enough || !a.looked.opaque && counts[rank.Partial] >= rank.Enough {
			a.atLeast = true
			break
		}
		text, err := s.text.loadUpTo(s, blob, end)
		if err != nil {
			return err
		}
		limit := len(text)
		if limit < int(length) { // a match within the last word may be cut
			limit = ngram.ExtendedStart(text, limit)
		}
		for start, end := range regex.RangesWhile(a.matcher, text[:limit], at, s.goOn) {
			counts.Add(rank.Of(text, start, end))
		}
		if at = max(at, limit); s.ended != nil {
			return s.ended
		}
	}
	if !a.looked.opaque {
		counts[rank.Word] = max(counts[rank.Word], whole)
	}
	a.looked.counts = counts
	return nil
}

// readInWords finds the ranges of atoms in a blob whose matches were only counted, and adds them to those that were gathered.
func (s *search) readInWords(blob uint32, atoms []inWords) error {
	length, err := s.content.Len(blob)
	if err != nil {
		return err
	}
	return s.readUpTo(blob, atoms, uint32(units(length)))
}

// readUpTo is readInWords for the words that start in the first superblocks, up to that number.
func (s *search) readUpTo(blob uint32, atoms []inWords, to uint32) error {
	s.showing = grown(s.showing, len(atoms))
	for i := range atoms {
		if err := atoms[i].read(s, blob, to, &s.showing[i]); err != nil {
			return err
		}
		s.gathered.content = append(s.gathered.content, &s.showing[i])
	}
	return nil
}
