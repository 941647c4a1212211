package shard

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// piece is a part of a literal that is a word, or the end or the beginning of one.
type piece struct {
	text string // in small letters
	// offset in the literal.
	offset int
	// ends and begins say that the word may begin before the piece, or end behind it.
	ends, begins bool

	// located says that the blocks of the lexicon that hold its words are known. With many,
	// there are too many blocks or words for the piece to narrow a search.
	located, many bool
	blocks        []uint32
	words         []wordMatch // nil until they are found
	df            uint64      // postings of all words
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

// findPiece finds the words of a piece, and how many postings they have, if at most the given
// number of blocks of the lexicon hold them and they narrow a search.
func (s *search) findPiece(p *piece, caseSensitive bool, literal string, blocks uint64) error {
	defer s.explain.during(PhaseWords)()
	if !p.located {
		if err := s.locatePiece(p); err != nil {
			return err
		}
	}
	if p.many || uint64(len(p.blocks)) > blocks {
		return nil
	}
	p.words = []wordMatch{}
	exact := literal[p.offset : p.offset+len(p.text)]
	for _, number := range p.blocks {
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
			p.words = append(p.words, wordMatch{word: s.lexicon.First + uint32(i), matches: oneOf(rank.Inside)})
			p.df += uint64(list.DF())
		}
		if len(p.words) > mostPieceWords {
			p.words, p.many = nil, true
			return nil
		}
	}
	s.counts.words += uint64(len(p.words))
	return nil
}

// locatePiece finds the blocks of the lexicon that may have the words of a piece.
func (s *search) locatePiece(p *piece) (err error) {
	p.located = true
	if p.ends {
		p.blocks, p.many, err = s.blocksHolding(p.text)
		p.many = p.many || len(p.blocks) > mostPieceBlocks
		return err
	}
	var from, to uint32
	if p.begins {
		from, to, err = s.words.WithPrefix(p.text, &s.lexicon)
	} else {
		from, to, err = s.words.Spellings(p.text, &s.lexicon)
	}
	if p.many = to-from > mostPieceWords; err != nil || p.many {
		return err
	}
	for number := from / blockWords; from < to && number <= (to-1)/blockWords; number++ {
		p.blocks = append(p.blocks, number)
	}
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

// piecePlaces finds the places of a literal whose n-grams are all left to words: those of
// its rarest piece. It returns nil if they would be too many, or are not known.
func (s *search) piecePlaces(l regex.Literal) (*wordPlaces, error) {
	if !isASCII(l.Text) {
		return nil, nil
	}
	var lead *piece
	pieces := piecesOf(l.Text)
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(len(b.text), len(a.text)) })
	for i := range pieces {
		p := &pieces[i]
		if lead != nil && lead.df <= fewPlaces {
			break
		}
		if err := s.findPiece(p, l.CaseSensitive, l.Text, mostPieceBlocks); err != nil {
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
	p := &wordPlaces{tallies: tallies, least: least, most: most, counted: true}
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
	windows := slices.DeleteFunc(s.shardText.Windows(l.Text, l.CaseSensitive), func(w ngram.Window) bool {
		return w.MinOffset < lead.offset || w.MinOffset >= lead.offset+len(lead.text)
	})
	cand, known, err := s.ngramPlaces(s.shardText, windows)
	if err != nil || !known {
		return false, err
	}
	var found []tally
	for superblock, blocks, ok := cand.SeekGE(0); ok; superblock, blocks, ok = cand.SeekGE(superblock + 1) {
		found = append(found, tally{superblock: superblock, blocks: blocks, opaque: true})
	}
	if len(found) > 0 {
		least, most := cand.AnchorOffset()
		p.tallies = mergeTallies(p.tallies, found)
		p.least, p.most = min(p.least, least), max(p.most, most)
	}
	return true, cand.Err()
}
