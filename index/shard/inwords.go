package shard

import (
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// inWords is what an index of words knows of the matches of an atom in one blob: enough to
// find them in its text.
type inWords struct {
	*matching
	// tallies of the blob's superblocks come first.
	tallies []tally
	// opaque says that some superblock of the blob is.
	opaque bool
}

// A content of up to mostWhole superblocks is read as a whole, once for its matches and for
// the lines around them, where those that are wanted are in one of wholeShare superblocks.
const (
	mostWhole  = 1 << 10
	wholeShare = 2
)

// of returns the tallies of a blob whose superblocks end before one.
func (w *inWords) of(end uint32) []tally {
	n := 0
	for n < len(w.tallies) && w.tallies[n].superblock < end {
		n++
	}
	return w.tallies[:n]
}

// upTo returns the first tallies, as many as have n matches together.
func upTo(n int, tallies []tally) []tally {
	for i := range tallies {
		if n -= tallies[i].matches.all(); n <= 0 {
			return tallies[:i+1]
		}
	}
	return tallies
}

// read sets the list to where the matches are in the blob: all, or the first ones if only
// keep are wanted.
func (w *inWords) read(s *search, blob uint32, keep int, list *spanList) error {
	list.reset()
	first, length, err := s.content.Span(blob)
	if err != nil {
		return err
	}
	add := func(start, end uint32, _ rank.Quality) bool {
		list.add(span{start, end})
		return keep == 0 || list.n < keep
	}
	end := first + (length+docstore.SuperblockSize-1)/docstore.SuperblockSize
	tallies := w.of(end)
	if keep > 0 {
		tallies = upTo(keep, tallies)
	}
	if w.opaque || s.text.holds(blob) || end-first <= mostWhole && len(tallies)*wholeShare >= int(end-first) {
		return w.readWhole(s, blob, add)
	}
	for len(tallies) > 0 && (keep == 0 || list.n < keep) {
		n, matches := 1, tallies[0].matches.all()
		for n < len(tallies) && tallies[n].superblock == tallies[n-1].superblock+1 {
			matches += tallies[n].matches.all()
			n++
		}
		r := wordReader{s: s, m: w.matching, blob: blob, wanted: matches, found: add}
		if err := r.read(tallies[0].superblock-first, tallies[n-1].superblock+1-first); err != nil {
			return err
		}
		tallies = tallies[n:]
	}
	return nil
}

// readWhole finds the matches in the whole content.
func (w *inWords) readWhole(s *search, blob uint32, add func(start, end uint32, quality rank.Quality) bool) error {
	text, err := s.text.load(s, blob)
	if err != nil {
		return err
	}
	for start, end := range regex.RangesWhile(w.matcher, text, 0, s.goOn) {
		if !add(uint32(start), uint32(end), rank.Of(text, start, end)) {
			break
		}
	}
	return s.ended
}
