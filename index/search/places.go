package search

import (
	"math/bits"

	"github.com/trawl-search/trawl/index/docstore"
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

// leastLookup is the least length of a literal that the n-grams of the lexicon find.
const leastLookup = 3

// contentPlaces finds where a literal may be in the content that can match; nil means anywhere. All parts of a search share one lookup of its
// places, unless these are of some contents only.
func (s *search) contentPlaces(l regex.Literal) (p *places, err error) {
	p, known := s.places[l]
	if known {
		s.explain.leads(p)
		return p, nil
	}
	if text, ok := wordText(l); !ok {
		p, err = s.phrasePlaces(l)
	} else if len(text) >= leastLookup {
		p, err = s.wordPlaces(l)
	}
	s.explain.leads(p)
	if err != nil || p != nil && p.within != nil {
		return p, err
	}
	if s.places == nil {
		s.places = map[regex.Literal]*places{}
	}
	s.places[l] = p
	return p, nil
}

// wordPlaces looks up a literal that is in words; it returns nil if these may be anywhere.
func (s *search) wordPlaces(l regex.Literal) (*places, error) {
	blocks, err := s.lexiconBlocks(l)
	if err != nil {
		return nil, err
	}
	found, err := s.matchBlocks(literalInWords(l), blocks)
	if err != nil || len(found) > mostPlaceWords {
		return nil, err
	}
	return s.placesOfWords(found, -farthestWord, 0, s.literalWindows(l))
}

// placesOfWords finds the places of a literal that has one of some words in a distance. It returns nil if they may be anywhere. Windows are those
// in the word.
func (s *search) placesOfWords(words []wordMatch, least, most int, windows []ngram.Window) (*places, error) {
	p := &places{least: least, most: most}
	var err error
	if p.tallies, err = s.tallies(words, withMasks, nil); err != nil {
		return nil, err
	}
	opaque, err := s.nearOpaque()
	if err != nil {
		return nil, err
	}
	if len(opaque) > 0 {
		ngrams, some, err := s.ngramPlaces(s.shardText, windows)
		if !some || err != nil {
			return nil, err
		}
		near, err := s.ngramsIn(ngrams, opaque)
		if err != nil {
			return nil, err
		}
		p.addOpaque(near, ngrams)
	}
	if len(p.tallies) > int(s.words.Superblocks()/placeShare) {
		return nil, nil
	}
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

// ngramsIn returns the places of n-grams in some superblocks.
func (s *search) ngramsIn(ngrams *inverted.Candidates, superblocks runs) (found []tally, err error) {
	defer s.explain.during(PhasePostings)()
	for _, run := range superblocks {
		for at := run.From; at < run.To; at++ {
			if err := s.tick(); err != nil {
				return nil, err
			}
			superblock, blocks, ok := ngrams.SeekUpTo(at, run.To-1)
			if !ok {
				break
			}
			found = append(found, tally{superblock: superblock, blocks: blocks})
			at = superblock
		}
	}
	return found, ngrams.Err()
}

// nearOpaque returns the opaque superblocks, where words are unknown, and those next to them.
func (s *search) nearOpaque() (near runs, err error) {
	opaque, err := s.words.Opaque()
	if err != nil || opaque.Len() == 0 {
		return nil, err
	}
	it := opaque.From(0)
	for o, ok := it.Next(); ok; o, ok = it.Next() {
		if err := s.tick(); err != nil {
			return nil, err
		}
		near = near.add(uint32(max(o, 1)-1), uint32(o+2))
	}
	return near, nil
}

// addOpaque adds the places of n-grams in and next to opaque superblocks.
func (p *places) addOpaque(near []tally, ngrams *inverted.Candidates) {
	if len(near) == 0 {
		return
	}
	for i := range near {
		near[i].opaque = true
	}
	least, most := ngrams.AnchorOffset()
	p.tallies = mergeTallies(p.tallies, near)
	p.least, p.most = min(p.least, least), max(p.most, most)
}

// around returns the superblocks that may hold a place between least and most bytes after a place
// of the tally, whose blocks must be set.
func (t *tally) around(least, most int) (first, last uint32) {
	low := bits.TrailingZeros8(t.blocks) + floorDiv(least, docstore.BlockSize)
	high := bits.Len8(t.blocks) - 1 + floorDiv(most+docstore.BlockSize-1, docstore.BlockSize)
	first = uint32(max(0, int64(t.superblock)+int64(floorDiv(low, ngram.BlocksPerSuperblock))))
	return first, uint32(max(0, int64(t.superblock)+int64(floorDiv(high, ngram.BlocksPerSuperblock))))
}

// keepNear keeps the tallies, and in them the blocks, that hold a place between least and most
// bytes before a place of others. It reuses the memory of the tallies.
func keepNear(tallies, others []tally, least, most int) []tally {
	at := blockCursor{tallies: others}
	kept := tallies[:0]
	for _, t := range tallies {
		if t.blocks &= at.around(t.superblock, least, most); t.blocks != 0 {
			kept = append(kept, t)
		}
	}
	return kept
}

// blockCursor looks at the blocks around superblocks, which ascend.
type blockCursor struct {
	tallies []tally
	next    int
}

// around returns the blocks of a superblock that have, between least and most bytes after them, a
// place in a block of the tallies.
func (c *blockCursor) around(superblock uint32, least, most int) (blocks uint8) {
	low, high := floorDiv(least, docstore.BlockSize), floorDiv(most+docstore.BlockSize-1, docstore.BlockSize)
	first := int64(superblock) + int64(floorDiv(low, ngram.BlocksPerSuperblock))
	last := int64(superblock) + int64(floorDiv(high+ngram.BlocksPerSuperblock-1, ngram.BlocksPerSuperblock))
	for c.next < len(c.tallies) && int64(c.tallies[c.next].superblock) < first {
		c.next++
	}
	for _, t := range c.tallies[c.next:] {
		if int64(t.superblock) > last {
			break
		}
		base := int(int64(t.superblock)-int64(superblock)) * ngram.BlocksPerSuperblock
		for j, mask := 0, t.blocks; mask != 0; j, mask = j+1, mask>>1 {
			if mask&1 == 1 {
				for b := max(0, base+j-high); b <= min(ngram.BlocksPerSuperblock-1, base+j-low); b++ {
					blocks |= 1 << b
				}
			}
		}
	}
	return blocks
}

func floorDiv(a, b int) int {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}
