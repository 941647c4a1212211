package search

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

// piece is a part of a literal that is a whole word, the end of one, or its beginning.
type piece struct {
	text string // in small letters
	// offset of the piece in the literal.
	offset int
	// ends says that the word may begin before the piece, begins that it may end after it.
	ends, begins bool

	// located says that the blocks of the lexicon with its words are known. many says that there
	// are too many blocks or words for the piece to narrow a search.
	located, many bool
	blocks        []uint32
	words         []wordMatch // nil until they are found
	df            uint64      // postings of all words
}

// starts bounds the distance in bytes from the start of a match to the start of the word.
func (p *piece) starts() (least, most int) {
	if p.ends {
		return p.offset - farthestWord, p.offset
	}
	return p.offset, p.offset
}

// piecesOf returns the pieces near the start of a literal.
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

// Pieces with more words than mostPieceWords, or in more blocks of the lexicon than
// mostPieceBlocks, hardly narrow a search and are skipped.
const (
	mostPieceWords  = 2048
	mostPieceBlocks = 2048
)

// findPiece finds the words of a piece and the number of their postings, if they narrow a search and the
// lexicon holds them in at most the given number of blocks.
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
	if err := s.words.AnnounceBlocks(p.blocks); err != nil {
		return err
	}
	for _, number := range p.blocks {
		if err := s.tick(); err != nil {
			return err
		}
		if err := s.words.Block(number, &s.lexicon); err != nil {
			return err
		}
		s.reads.LexiconBlocks++
		for i := range s.lexicon.Len() {
			if !p.fits(s.lexicon.Word(i), exact, caseSensitive) {
				continue
			}
			p.words = append(p.words, wordMatch{word: s.lexicon.First + uint32(i), matches: oneOf(rank.Inside)})
		}
		if len(p.words) > mostPieceWords {
			p.words, p.many = nil, true
			return nil
		}
	}
	if err := s.announceLists(p.words); err != nil {
		return err
	}
	for i := range p.words {
		list, err := s.words.List(p.words[i].word)
		if err != nil {
			return err
		}
		p.df += uint64(list.DF())
	}
	s.reads.Words += uint64(len(p.words))
	return nil
}

// locatePiece finds the blocks of the lexicon that may hold the words of a piece.
func (s *search) locatePiece(p *piece) (err error) {
	p.located = true
	if p.ends {
		some := false
		p.blocks, some, err = s.blocksHolding(p.text)
		p.many = !some || len(p.blocks) > mostPieceBlocks
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

// fits reports whether a word may be the word of the piece.
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

// piecePlaces finds the places of a literal all of whose n-grams are left to words, by its rarest
// piece. It returns nil if there are too many or they are unknown.
func (s *search) piecePlaces(l regex.Literal) (*places, error) {
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
	if lead == nil {
		return nil, nil
	}
	tallies, err := s.tallies(lead.words, true, nil)
	if err != nil {
		return nil, err
	}
	least, most := lead.starts()
	if !l.CaseSensitive {
		most *= utf8.UTFMax // runes that fold to the letters before may be longer
	}
	p := &places{tallies: tallies, least: least, most: most}
	windows := slices.DeleteFunc(s.literalWindows(l), func(w ngram.Window) bool {
		return w.MinOffset < lead.offset || w.MinOffset >= lead.offset+len(lead.text)
	})
	if known, err := s.addOpaque(p, windows, nil); !known || err != nil || len(p.tallies) > int(s.words.Superblocks()/placeShare) {
		return nil, err
	}
	return p, nil
}
