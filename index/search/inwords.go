package search

import (
	"math"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// inWords is what an index of words knows of the matches of an atom in one blob: enough to find
// them in its text.
type inWords struct {
	*matching
	// tallies begin with those of the blob's superblocks.
	tallies []tally
	// opaque says that a superblock of the blob is opaque.
	opaque bool
}

// A content of up to mostWhole superblocks is read as a whole, once for its matches and for the
// lines around them, if at least one in wholeShare of its superblocks has wanted matches.
const (
	mostWhole  = 1 << 10
	wholeShare = 2
)

// of returns the tallies of a blob. end is the superblock after its last one.
func (w *inWords) of(end uint32) []tally {
	n := 0
	for n < len(w.tallies) && w.tallies[n].superblock < end {
		n++
	}
	return w.tallies[:n]
}

// placed reports whether tallies say which opaque superblocks have matches. Those that know only that a
// blob has opaque superblocks have no tally of them, or one without matches.
func placed(tallies []tally) (some bool) {
	for _, t := range tallies {
		if t.opaque && t.matches == 0 {
			return false
		}
		some = some || t.opaque
	}
	return some
}

// find returns the tallies of the first superblocks of a blob, up to that number, which has superblocks from first on. whole says that its text is
// read from the start: nobody knows in which opaque superblocks the matches are, or they are in most superblocks.
func (w *inWords) find(first, to uint32) (tallies []tally, whole bool) {
	tallies = w.of(first + to)
	anywhere := w.opaque && (w.most == 0 || !placed(tallies)) // they may also reach beyond
	return tallies, anywhere || to <= mostWhole && len(tallies)*wholeShare >= int(to)
}

// read sets the list to the places of the matches in the words that start in the blob's superblocks before to. Those that begin later may be there
// too, or some of them.
func (w *inWords) read(s *search, blob, to uint32, list *spanList) error {
	first, end, err := s.superblocksOf(blob)
	if err != nil {
		return err
	}
	to = min(to, end-first)
	tallies, whole := w.find(first, to)
	if whole || s.text.holds(blob) {
		return w.readFirst(s, blob, to, list)
	}
	opaque, err := s.words.Opaque()
	if err != nil {
		return err
	}
	list.reset(w.number)
	add := func(start, end uint32, _ rank.Quality) { list.add(span{start, end}) }
	for len(tallies) > 0 {
		n, wanted := 1, tallies[0].matches.all()
		for n < len(tallies) && tallies[n].superblock == tallies[n-1].superblock+1 && tallies[n].opaque == tallies[0].opaque {
			wanted += tallies[n].matches.all()
			n++
		}
		run := docstore.Run{From: tallies[0].superblock, To: tallies[n-1].superblock + 1}
		part := wordPart{blob: blob, from: run.From - first, to: run.To - first, head: run.From > first}
		if tallies[0].opaque {
			part = opaquePart(&opaque, blob, first, run)
		}
		if err := s.wordRanges(w.matching, part, wanted, add); err != nil {
			return err
		}
		tallies = tallies[n:]
	}
	return nil
}

// readFirst is read from the text of those superblocks, and of what follows, into which the last match may go on.
func (w *inWords) readFirst(s *search, blob, to uint32, list *spanList) error {
	end := uint64(to) * docstore.SuperblockSize
	for more := uint64(docstore.SuperblockSize); ; more *= 2 {
		list.reset(w.number)
		text, err := s.text.loadUpTo(s, blob, uint32(min(end+more, math.MaxUint32)))
		if err != nil {
			return err
		}
		cut := false
		for start, stop := range regex.RangesWhile(w.matcher, text, 0, s.goOn) {
			if cut = stop == len(text) && !s.text.whole; cut || uint64(start) >= end {
				break
			}
			list.add(span{uint32(start), uint32(stop)})
		}
		if !cut || s.ended != nil {
			return s.ended
		}
	}
}
