package shard

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/regex"
)

// A literal with other bytes than word bytes falls into pieces of words that know where
// they end: of "let Some(n" a word ends in let, one is Some, and one begins with n. Where
// the words of several pieces start in blocks that fit each other, and the n-grams between
// words are, too, the text decides.

// piece is a part of a literal that is a word, or the end or the beginning of one.
type piece struct {
	text string // in small letters
	// offset in the literal.
	offset int
	// ends and begins say that the word may begin before the piece, or end behind it.
	ends, begins bool

	words []wordMatch
	df    uint64 // postings of all words
}

// starts bounds how many bytes after the start of a match the word starts.
func (p *piece) starts() (least, most int) {
	if p.ends {
		return p.offset - farthestWord, p.offset
	}
	return p.offset, p.offset
}

// piecesOf cuts the pieces out of a literal that are near its start.
func piecesOf(text string) (pieces []piece) {
	for start := 0; start < min(len(text), ngram.MaxSpan); {
		end := start
		for end < len(text) && ngram.IsWord(text[end]) {
			end++
		}
		if end > start {
			pieces = append(pieces, piece{text: strings.ToLower(text[start:end]), offset: start, ends: start == 0, begins: end == len(text)})
		}
		start = end + 1
	}
	return pieces
}

// Pieces whose words are more than mostPieceWords, or in more blocks of the lexicon than
// mostPieceBlocks, narrow little and are left out.
const (
	mostPieceWords  = 2048
	mostPieceBlocks = 2048
)

// narrow finds fewer places than cand, those of a literal's windows; nil if its words do not
// allow it. Without case, runes that are not ASCII may have variants of other lengths, so that
// it is not known where pieces are.
func (s *search) narrow(l regex.Literal, windows []ngram.Window, cand places) (*wordPlaces, error) {
	if cand.Cost() <= fewPlaces || !l.CaseSensitive && !isASCII(l.Text) {
		return nil, nil
	}
	pieces := piecesOf(l.Text)
	for i := range pieces {
		if err := s.findPiece(&pieces[i], l.CaseSensitive, l.Text); err != nil {
			return nil, err
		}
	}
	pieces = slices.DeleteFunc(pieces, func(p piece) bool { return p.words == nil })
	slices.SortStableFunc(pieces, func(a, b piece) int { return int(min(a.df, 1<<30)) - int(min(b.df, 1<<30)) })
	if len(pieces) == 0 || pieces[0].df > postingsPay*cand.Cost() {
		return nil, nil
	}
	return s.meetPieces(pieces, windows, cand)
}

// piecePlaces finds the places of a literal whose n-grams are all left to words: those of
// its rarest piece. It returns nil if they would be too many, or are not known.
func (s *search) piecePlaces(l regex.Literal) (*wordPlaces, error) {
	if !isASCII(l.Text) {
		return nil, nil
	}
	var lead *piece
	pieces := piecesOf(l.Text)
	for i := range pieces {
		p := &pieces[i]
		if err := s.findPiece(p, l.CaseSensitive, l.Text); err != nil {
			return nil, err
		}
		if p.words != nil && (lead == nil || p.df < lead.df) {
			lead = p
		}
	}
	if lead == nil || len(lead.words) > mostPlaceWords {
		return nil, nil
	}
	tallies, err := s.tallies(lead.words, true)
	if err != nil {
		return nil, err
	}
	least, most := lead.starts()
	if !l.CaseSensitive {
		most *= utf8.UTFMax // runes that fold to the letters before may be longer
	}
	p := &wordPlaces{tallies: tallies, least: least, most: most}
	if known, err := s.addPieceOpaque(p, lead, l); !known || err != nil || p.Cost() > uint64(s.words.Superblocks()/placeShare) {
		return nil, err
	}
	return p, nil
}

// addPieceOpaque adds the places where the word of a piece starts in an opaque superblock. All
// n-grams that start in such a word are indexed; known is false if the literal has none.
func (s *search) addPieceOpaque(p *wordPlaces, lead *piece, l regex.Literal) (known bool, err error) {
	opaque, err := s.words.Opaque()
	if err != nil || opaque.Len() == 0 {
		return err == nil, err
	}
	windows := slices.DeleteFunc(ngram.LiteralWindows(l.Text, l.CaseSensitive), func(w ngram.Window) bool {
		return w.MinOffset < lead.offset || w.MinOffset >= lead.offset+len(lead.text)
	})
	cand, known, err := s.ngramPlaces(s.shardText, windows)
	if err != nil || !known {
		return false, err
	}
	var found []tally
	for superblock, blocks, ok := cand.SeekGE(0); ok; superblock, blocks, ok = cand.SeekGE(superblock + 1) {
		found = append(found, tally{superblock: superblock, blocks: blocks})
	}
	if len(found) > 0 {
		least, most := cand.AnchorOffset()
		p.tallies = mergeTallies(p.tallies, found)
		p.least, p.most = min(p.least, least), max(p.most, most)
	}
	return true, cand.Err()
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// fewPlaces are not worth being narrowed further. Of words postingsPay postings are read for
// each place that the rarest n-gram has: two thirds of what verifying a place takes, see
// verifyPays, since words do not save all places.
const (
	fewPlaces   = 64
	postingsPay = 32
)

// findPiece finds the words of a piece, and how many postings they have. A piece that
// narrows little has none.
func (s *search) findPiece(p *piece, caseSensitive bool, literal string) error {
	defer s.explain.during(PhaseWords)()
	from, to := uint32(0), uint32(0)
	var blocks []uint32
	var err error
	switch {
	case p.ends:
		var all bool
		if blocks, all, err = s.blocksHolding(p.text); all || err != nil || len(blocks) > mostPieceBlocks {
			return err
		}
	case p.begins:
		from, to, err = s.words.WithPrefix(p.text)
	default:
		from, to, err = s.words.Spellings(p.text)
	}
	if err != nil || to-from > mostPieceWords {
		return err
	}
	for number := from / blockWords; from < to && number <= (to-1)/blockWords; number++ {
		blocks = append(blocks, number)
	}
	p.words = []wordMatch{}
	exact := literal[p.offset : p.offset+len(p.text)]
	for _, number := range blocks {
		if err := s.tick(); err != nil {
			return err
		}
		if err := s.words.Block(number, &s.lexicon); err != nil {
			return err
		}
		s.counts.lexiconBlocks++
		for i := range s.lexicon.Len() {
			if !p.fits(s.lexicon.Word(i), exact, caseSensitive) {
				continue
			}
			list, err := s.words.List(s.lexicon.First + uint32(i))
			if err != nil {
				return err
			}
			p.words = append(p.words, wordMatch{word: s.lexicon.First + uint32(i), matches: 1})
			p.df += uint64(list.DF())
		}
		if len(p.words) > mostPieceWords {
			p.words = nil
			return nil
		}
	}
	s.counts.words += uint64(len(p.words))
	return nil
}

// fits reports whether a word may be that of a piece.
func (p *piece) fits(word []byte, exact string, caseSensitive bool) bool {
	n := len(p.text)
	if len(word) < n || len(word) > n && !p.ends && !p.begins {
		return false
	}
	if p.ends && !p.begins {
		word = word[len(word)-n:]
	} else if !p.ends {
		word = word[:n]
	}
	if caseSensitive {
		return string(word) == exact
	}
	return bytes.EqualFold(word, []byte(p.text))
}

// meetPieces returns the places of the rarest piece around which the others are, and the
// n-grams of the literal.
func (s *search) meetPieces(pieces []piece, windows []ngram.Window, cand places) (*wordPlaces, error) {
	lead := &pieces[0]
	tallies, err := s.tallies(lead.words, true)
	if err != nil {
		return nil, err
	}
	for i := range pieces[1:] {
		other := &pieces[1+i]
		if other.df > verifyPays*uint64(len(tallies)) {
			break
		}
		if tallies, err = s.near(tallies, lead, other); err != nil {
			return nil, err
		}
	}
	least, most := lead.starts()
	met, err := s.nearNgrams(tallies, least, most, cand)
	if err != nil {
		return nil, err
	}
	p := &wordPlaces{tallies: met, least: least, most: most}
	return p, s.addNearOpaque(p, windows)
}

// verifyPays is how many postings are read for each place that they may save. Verifying one
// took 6.6 to 20 µs, a posting of a long list with its mask 136 to 244 ns (BenchmarkCosts, on
// a busy machine).
const verifyPays = 48

// near keeps the places of a piece around which the words of another one start.
func (s *search) near(tallies []tally, lead, other *piece) ([]tally, error) {
	found, err := s.tallies(other.words, true)
	if err != nil {
		return nil, err
	}
	leadLeast, leadMost := lead.starts()
	least, most := other.starts()
	at := blockCursor{tallies: found}
	kept := tallies[:0]
	for _, t := range tallies {
		t.blocks &= at.around(t.superblock, least-leadMost, most-leadLeast)
		if t.blocks != 0 {
			kept = append(kept, t)
		}
	}
	return kept, nil
}

// blockCursor looks at the blocks around ascending superblocks.
type blockCursor struct {
	tallies []tally
	next    int
}

// around returns the blocks b of a superblock for which a block of the tallies holds a place
// that is between least and most bytes behind one of b.
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

// nearNgrams keeps the places around which the literal's n-grams are.
func (s *search) nearNgrams(tallies []tally, leadLeast, leadMost int, cand places) ([]tally, error) {
	least, most := cand.AnchorOffset()
	var found []tally
	known := int64(-1) // last superblock that is in found, if it is a place
	for _, t := range tallies {
		if err := s.tick(); err != nil {
			return nil, err
		}
		for superblock := max(int64(t.superblock)-1, known+1); superblock <= int64(t.superblock)+1; superblock++ {
			at, blocks, ok := cand.SeekGE(uint32(superblock))
			if !ok || int64(at) > int64(t.superblock)+1 {
				known = int64(t.superblock) + 1
				break
			}
			found = append(found, tally{superblock: at, blocks: blocks})
			superblock = int64(at)
			known = superblock
		}
	}
	cursor := blockCursor{tallies: found}
	kept := tallies[:0]
	for _, t := range tallies {
		if t.blocks &= cursor.around(t.superblock, least-leadMost, most-leadLeast); t.blocks != 0 {
			kept = append(kept, t)
		}
	}
	return kept, cand.Err()
}

// addNearOpaque adds the places of the literal's n-grams in and beside opaque superblocks,
// where no words are known.
func (s *search) addNearOpaque(p *wordPlaces, windows []ngram.Window) error {
	opaque, err := s.words.Opaque()
	if err != nil || opaque.Len() == 0 {
		return err
	}
	cand, _, err := s.ngramPlaces(s.shardText, windows)
	if err != nil {
		return err
	}
	var near []tally
	from := uint32(0)
	it := opaque.From(0)
	for o, ok := it.Next(); ok; o, ok = it.Next() {
		if err := s.tick(); err != nil {
			return err
		}
		for from = max(from, uint32(max(o, 1)-1)); uint64(from) <= o+1; from++ {
			at, blocks, ok := cand.SeekGE(from)
			if !ok || uint64(at) > o+1 {
				break
			}
			near = append(near, tally{superblock: at, blocks: blocks})
			from = at
		}
	}
	least, most := cand.AnchorOffset()
	if len(near) > 0 {
		p.tallies = mergeTallies(p.tallies, near)
		p.least, p.most = min(p.least, least), max(p.most, most)
	}
	return cand.Err()
}
