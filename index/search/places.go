package search

import (
	"slices"

	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// places are the superblocks and blocks in which a literal may be: the places of its rarest n-gram, or of the words that hold it.
type places interface {
	// SeekGE moves to the first place whose superblock is at least the given one, and never back. Bit j of blocks is set if block j
	// may have the anchor of a match.
	SeekGE(superblock uint32) (found uint32, blocks uint8, ok bool)
	// AnchorOffset bounds the distance in bytes from the start of a match to the start of its anchor.
	AnchorOffset() (least, most int)
	// Cost is the largest possible number of places.
	Cost() uint64
	Err() error
}

// wordPlaces are places of a literal by words that hold it or a piece of it, and by n-grams where words are unknown.
type wordPlaces struct {
	tallies       []tally // never changed
	at, countedAt int     // indexes in tallies, for SeekGE and mostIn
	least, most   int     // see AnchorOffset
	// counted says that tallies bound the number of matches, except the opaque ones.
	counted bool
}

// again returns the same places, from the first one on.
func (p *wordPlaces) again() *wordPlaces {
	return &wordPlaces{tallies: p.tallies, least: p.least, most: p.most, counted: p.counted}
}

// farthestWord is how many bytes before a literal a word that holds it may start.
const farthestWord = ngram.MaxWord - 1

func (p *wordPlaces) SeekGE(superblock uint32) (found uint32, blocks uint8, ok bool) {
	if p.at = seekTally(p.tallies, p.at, superblock); p.at == len(p.tallies) {
		return 0, 0, false
	}
	return p.tallies[p.at].superblock, p.tallies[p.at].blocks, true
}

// mostIn bounds how many matches start in superblocks [first, end), all of one blob, up to rank.Enough. Calls mostly ascend.
func (p *wordPlaces) mostIn(first, end uint32) (most int) {
	if p.countedAt > 0 && p.tallies[p.countedAt-1].superblock >= first {
		p.countedAt = 0
	}
	p.countedAt = seekTally(p.tallies, p.countedAt, first)
	for i := p.countedAt; i < len(p.tallies) && p.tallies[i].superblock < end; i++ {
		t := &p.tallies[i]
		if t.opaque || t.matches == 0 {
			return rank.Enough
		}
		most += t.matches.all()
	}
	return min(most, rank.Enough)
}

// in returns the places in superblocks [first, end).
func (p *wordPlaces) in(first, end uint32) []tally {
	if p.at > 0 && p.tallies[p.at-1].superblock >= first {
		p.at = 0
	}
	p.at = seekTally(p.tallies, p.at, first)
	n := p.at
	for n < len(p.tallies) && p.tallies[n].superblock < end {
		n++
	}
	return p.tallies[p.at:n]
}

func (p *wordPlaces) AnchorOffset() (least, most int) { return p.least, p.most }

func (p *wordPlaces) Cost() uint64 { return uint64(len(p.tallies)) }
func (p *wordPlaces) Err() error   { return nil }

// With more than mostPlaceWords words, or more than one in placeShare of all superblocks, the places of a literal narrow a search too
// little to be worth adding up.
const (
	mostPlaceWords = 1 << 13
	placeShare     = 3
)

// contentPlaces finds where a literal may be in the content; ok is false if it may be anywhere. All parts of a search share one
// lookup of its places by words.
func (s *search) contentPlaces(l regex.Literal) (p places, ok bool, err error) {
	known, found := s.places[l]
	if known != nil {
		return known.again(), true, nil
	}
	if text, ok := wordText(l); ok {
		if !found {
			known, err = s.wordPlaces(l, len(text))
		}
		return s.keepPlaces(l, known, nil, err)
	}
	windows := slices.DeleteFunc(s.literalWindows(l), func(w ngram.Window) bool { return w.OfWords })
	if len(windows) == 0 {
		if !found {
			known, err = s.piecePlaces(l)
		}
		return s.keepPlaces(l, known, nil, err)
	}
	cand, ok, err := s.ngramPlaces(s.shardText, windows)
	if !ok || err != nil {
		return nil, false, err
	}
	if !found {
		known, err = s.narrow(l, windows, cand)
	}
	return s.keepPlaces(l, known, cand, err)
}

// keepPlaces remembers the places of a literal by words and returns them, or the others if they are nil.
func (s *search) keepPlaces(l regex.Literal, known *wordPlaces, other places, err error) (places, bool, error) {
	if err != nil {
		return nil, false, err
	}
	if s.places == nil {
		s.places = map[regex.Literal]*wordPlaces{}
	}
	s.places[l] = known
	if known != nil {
		return known.again(), true, nil
	}
	return other, other != nil, nil
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
func (s *search) wordPlaces(l regex.Literal, size int) (*wordPlaces, error) {
	if size < leastLookup {
		return nil, nil
	}
	found, err := s.matchWords(literalInWords(l), l)
	if err != nil || len(found) > mostPlaceWords {
		return nil, err
	}
	p := &wordPlaces{least: -farthestWord, counted: true}
	if p.tallies, err = s.tallies(found, true, nil); err != nil {
		return nil, err
	}
	if known, err := s.addOpaque(p, s.literalWindows(l), nil); !known || err != nil {
		return nil, err
	}
	if p.Cost() > uint64(s.words.Superblocks()/placeShare) {
		return nil, nil
	}
	return p, nil
}

// leastLookup is the least length of a literal that the n-grams of the lexicon find.
const leastLookup = 3
