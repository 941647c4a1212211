package search

import (
	"slices"

	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/regex"
)

// places are the superblocks and blocks in which a literal may be: the places of its rarest n-gram, or of the words that hold it or a piece
// of it and, where words are unknown, of its n-grams. They do not change once they are known.
type places struct {
	tallies []tally
	// least and most bound the distance in bytes from the start of a match to the start of its anchor.
	least, most int
	// byNgrams says that words were not asked to narrow them down.
	byNgrams bool
	// within has the blobs of the places; nil stands for all.
	within *among
}

// farthestWord is how many bytes before a literal a word that holds it may start.
const farthestWord = ngram.MaxWord - 1

// With more than mostPlaceWords words, or more than one in placeShare of all superblocks, the places that words give a literal narrow a search
// too little to be worth adding up.
const (
	mostPlaceWords = 1 << 13
	placeShare     = 3
)

// contentPlaces finds where a literal may be in the content that can match; nil means anywhere. All parts of a search share one lookup of its
// places, unless these are of some contents only.
func (s *search) contentPlaces(l regex.Literal) (p *places, err error) {
	p, known := s.places[l]
	if known {
		return p, nil
	}
	if text, ok := wordText(l); ok {
		p, err = s.wordPlaces(l, len(text))
	} else if windows := slices.DeleteFunc(s.literalWindows(l), func(w ngram.Window) bool { return w.OfWords }); len(windows) > 0 {
		p, err = s.phrasePlaces(l, windows)
	} else {
		p, err = s.piecePlaces(l)
	}
	if err != nil || p != nil && p.within != nil {
		return p, err
	}
	if s.places == nil {
		s.places = map[regex.Literal]*places{}
	}
	s.places[l] = p
	return p, nil
}

// ngramPlaces looks a literal up by its n-grams; ok is false when it has none.
func (s *search) ngramPlaces(x *inverted.Index, windows []ngram.Window) (p *inverted.Candidates, ok bool, err error) {
	if len(windows) == 0 {
		return nil, false, nil
	}
	cand, err := x.Literal(windows)
	if err != nil {
		return nil, false, err
	}
	s.walks = append(s.walks, cand)
	s.stats.ListsRead += uint64(cand.Lists())
	return cand, true, nil
}

// seekTally returns the index, not below at, of the first tally whose superblock is at least from.
func seekTally(tallies []tally, at int, from uint32) int {
	return seek(tallies, at, from, func(t *tally) uint32 { return t.superblock })
}

// wordPlaces looks up a literal that is in words of at least size bytes; it returns nil if these may be anywhere.
func (s *search) wordPlaces(l regex.Literal, size int) (*places, error) {
	if size < leastLookup {
		return nil, nil
	}
	found, err := s.matchWords(literalInWords(l), l)
	if err != nil || len(found) > mostPlaceWords {
		return nil, err
	}
	p := &places{least: -farthestWord}
	if p.tallies, err = s.tallies(found, true, nil); err != nil {
		return nil, err
	}
	if known, err := s.addOpaque(p, s.literalWindows(l), nil); !known || err != nil {
		return nil, err
	}
	if len(p.tallies) > int(s.words.Superblocks()/placeShare) {
		return nil, nil
	}
	return p, nil
}

// leastLookup is the least length of a literal that the n-grams of the lexicon find.
const leastLookup = 3
