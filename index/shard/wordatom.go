package shard

import (
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// wordAtom finds a text within the words of documents. Which blobs have how many
// matches is known before any is looked at; only what is shown is read.
type wordAtom struct {
	*matching
	s    *search
	hits *wordHits
	next int // index in blobs of the first that was not passed
	// keep is how many spans are wanted of a document, 0 for all.
	keep int
	// spans are the ranges of the document read last, and best the best quality of one.
	spans spanList
	best  rank.Quality
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
		if err := a.read(d); err != nil {
			return err
		}
		if a.spans.n > 0 {
			g.content = append(g.content, &a.spans)
		}
		g.best = max(g.best, a.best)
		return nil
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

// read reads where the matches are in a document that has some: all, or the first ones
// that are wanted.
func (a *wordAtom) read(d *document) error {
	a.spans.reset()
	a.best = rank.None
	b := a.tally(d)
	if b == nil {
		return nil
	}
	first, length, err := a.s.content.Span(d.blob)
	if err != nil {
		return err
	}
	end := first + (length+docstore.SuperblockSize-1)/docstore.SuperblockSize
	add := func(start, end uint32, quality rank.Quality) bool {
		a.spans.add(span{start, end})
		a.best = max(a.best, quality)
		return a.keep == 0 || a.spans.n < a.keep
	}
	if b.opaque || a.s.text.holds(d.blob) || end-first <= mostWhole && a.touched(b, end)*wholeShare >= int(end-first) {
		return a.readWhole(d.blob, add)
	}
	for tallies := a.hits.tallies[b.first:]; len(tallies) > 0 && tallies[0].superblock < end; {
		n, matches := 1, int(tallies[0].matches)
		for n < len(tallies) && tallies[n].superblock < end && tallies[n].superblock == tallies[n-1].superblock+1 {
			matches += int(tallies[n].matches)
			n++
		}
		r := wordReader{s: a.s, m: a.matching, blob: d.blob, wanted: matches, found: add}
		if err := r.read(tallies[0].superblock-first, tallies[n-1].superblock+1-first); err != nil {
			return err
		}
		if a.keep > 0 && a.spans.n == a.keep {
			break
		}
		tallies = tallies[n:]
	}
	return nil
}

// A content of up to mostWhole superblocks is read as a whole, once for its matches and for
// the lines around them, where these are in one of wholeShare superblocks.
const (
	mostWhole  = 1 << 10
	wholeShare = 2
)

// touched is how many superblocks of a blob that ends before one have matches.
func (a *wordAtom) touched(b *blobTally, end uint32) (n int) {
	for _, t := range a.hits.tallies[b.first:] {
		if t.superblock >= end {
			break
		}
		n++
	}
	return n
}

// readWhole finds the matches in the whole content.
func (a *wordAtom) readWhole(blob uint32, add func(start, end uint32, quality rank.Quality) bool) error {
	text, err := a.s.text.load(a.s, blob)
	if err != nil {
		return err
	}
	for start, end := range regex.RangesWhile(a.matcher, text, 0, a.s.goOn) {
		if !add(uint32(start), uint32(end), rank.Of(text, start, end)) {
			break
		}
	}
	return a.s.ended
}
