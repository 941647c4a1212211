package search

import (
	"cmp"

	"github.com/trawl-search/trawl/index/rank"
)

// Words do not decide some texts of a match:any, such as naïve or foo.bar. The search looks for
// these at the places of their n-grams, once, before it looks at documents. They then have tallies
// as words have, and the best documents for a thousand words are found without looking at the other
// files.

// looseHits finds the blobs that hold such a text. ok is false if the text has no n-grams that say
// where it may be.
func (s *search) looseHits(m *matching) (h *wordHits, ok bool, err error) {
	known := s.knownOf(m)
	if known.hits != nil {
		return known.hits, true, nil
	}
	a := &contentAtom{matching: m, s: s}
	if err := a.prepare(); err != nil || !a.planned.narrow() {
		return nil, false, err
	}
	candidates, err := a.planned.open(anyCost)
	if err != nil {
		return nil, false, err
	}
	h = &wordHits{}
	for blob, ok, err := candidates.seek(0); ok || err != nil; blob, ok, err = candidates.seek(blob + 1) {
		if err := cmp.Or(err, s.tick()); err != nil {
			return nil, false, err
		}
		a.spans.reset(m.number)
		a.counts = rank.Counts{}
		if a.anchors != nil {
			err = a.searchWindows(blob)
		} else {
			var text []byte
			if text, err = s.text.load(s, blob); err == nil {
				err = a.searchText(text)
			}
		}
		first, end, err2 := s.superblocksOf(blob)
		if err := cmp.Or(err, err2); err != nil {
			return nil, false, err
		}
		if a.counts.All() > 0 {
			// One tally for the whole blob serves as well as those of opaque superblocks, since showing a file searches its whole text.
			t := blobTally{blob: blob, counts: a.counts, opaque: true, first: len(h.tallies)}
			m.rate(&t, int(end-first))
			h.tallies, h.blobs = append(h.tallies, tally{superblock: first, opaque: true}), append(h.blobs, t)
		}
	}
	known.hits = h
	return h, true, nil
}
