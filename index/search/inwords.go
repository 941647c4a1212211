package search

import (
	"math"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/ngram"
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

// read sets the list to the places of the matches in the words that start in the blob's superblocks before to. Further places may follow
// that are not all there are, or wrong.
func (w *inWords) read(s *search, blob, to uint32, list *spanList) error {
	list.reset(w.number)
	first, _, err := s.superblocksOf(blob)
	if err != nil {
		return err
	}
	add := func(start, end uint32, _ rank.Quality) bool {
		list.add(span{start, end})
		return true
	}
	tallies := w.of(first + to)
	// Where matches in opaque superblocks are is not known, or they may reach beyond.
	anywhere := w.opaque && (w.most == 0 || !placed(tallies))
	if anywhere || s.text.holds(blob) || to <= mostWhole && len(tallies)*wholeShare >= int(to) {
		return w.readFirst(s, blob, to, add)
	}
	for len(tallies) > 0 {
		n, matches := 1, tallies[0].matches.all()
		for n < len(tallies) && tallies[n].superblock == tallies[n-1].superblock+1 && tallies[n].opaque == tallies[0].opaque {
			matches += tallies[n].matches.all()
			n++
		}
		run := opaqueRun{tallies[0].superblock, tallies[n-1].superblock + 1}
		if tallies[0].opaque {
			opaque, err := s.words.Opaque()
			if err != nil {
				return err
			}
			err = s.wordRanges(w.matching, opaquePart(&opaque, blob, first, run), add)
			if err != nil {
				return err
			}
		} else {
			r := wordReader{s: s, m: w.matching, blob: blob, wanted: matches, found: add}
			if err := r.read(run.from-first, run.to-first); err != nil {
				return err
			}
		}
		tallies = tallies[n:]
	}
	return nil
}

// readFirst is read from the text of those superblocks and what ends their last word, which has at most ngram.MaxWord bytes unless its
// superblock is opaque.
func (w *inWords) readFirst(s *search, blob, to uint32, add func(start, end uint32, quality rank.Quality) bool) error {
	end := int(to)*docstore.SuperblockSize + ngram.MaxWord + contextBytes
	text, err := s.text.loadUpTo(s, blob, uint32(min(end, math.MaxUint32)))
	if err != nil {
		return err
	}
	if end < len(text) || !s.text.whole {
		text = text[:ngram.ExtendedStart(text, min(end, len(text)))]
	}
	for start, end := range regex.RangesWhile(w.matcher, text, 0, s.goOn) {
		if !add(uint32(start), uint32(end), rank.Of(text, start, end)) {
			break
		}
	}
	return s.ended
}

// firstWith returns the number of the first superblocks of a blob in which atoms have n matches together; all if they have fewer, or
// if matches may be in opaque superblocks.
func firstWith(n int, atoms []inWords, first, end uint32) uint32 {
	rest := make([][]tally, 0, len(atoms))
	for i := range atoms {
		if atoms[i].opaque {
			return end - first
		}
		rest = append(rest, atoms[i].of(end))
	}
	for {
		next := -1
		for i := range rest {
			if len(rest[i]) > 0 && (next < 0 || rest[i][0].superblock < rest[next][0].superblock) {
				next = i
			}
		}
		if next < 0 {
			return end - first
		}
		if n -= rest[next][0].matches.all(); n <= 0 {
			return rest[next][0].superblock + 1 - first
		}
		rest[next] = rest[next][1:]
	}
}
