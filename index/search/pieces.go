package search

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/rank"
)

// piece is a part of a literal that is a whole word, the end of one, or its beginning; or it is the n-grams between them.
type piece struct {
	ngrams *inverted.Candidates
	text   string // in small letters
	// offset of the piece in the literal.
	offset int
	// ends says that the word may begin before the piece, begins that it may end after it.
	ends, begins bool

	// located says that the blocks of the lexicon with its words are known. many says that there
	// are too many blocks or words for the piece to narrow a search.
	located, many bool
	blocks        []uint32
	words         []wordMatch // nil until they are found
	df            uint64      // postings of all words, or of the rarest n-gram
}

// found reports whether it is known where the piece may be.
func (p *piece) found() bool { return p.ngrams != nil || p.words != nil }

// order is the key for meeting pieces: the number of their postings, or of the blocks of the
// lexicon to be read.
func (p *piece) order() uint64 {
	if p.found() {
		return p.df
	}
	return 1<<48 + uint64(len(p.blocks))
}

// starts bounds the distance in bytes from the start of a match to the start of the word, or of the rarest n-gram.
func (p *piece) starts() (least, most int) {
	switch {
	case p.ngrams != nil:
		return p.ngrams.AnchorOffset()
	case p.ends:
		return p.offset - farthestWord, p.offset
	}
	return p.offset, p.offset
}

// piecesOf returns the pieces near the start of a literal, by the cost of their lookup: the longest first, which few words have, and last the one
// that ends words. Words that begin with a piece are adjacent in the lexicon. Those that end in one are looked up by n-grams.
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
	slices.SortStableFunc(pieces, func(a, b piece) int {
		if a.ends != b.ends {
			return cmp.Compare(b.offset, a.offset) // only the first piece has ends
		}
		return cmp.Compare(len(b.text), len(a.text))
	})
	return pieces
}

// Pieces with more words than mostPieceWords, or in more blocks of the lexicon than
// mostPieceBlocks, hardly narrow a search and are skipped.
const (
	mostPieceWords  = 2048
	mostPieceBlocks = 2048
)

// find finds the words of a piece and the number of their postings, if they narrow a search and the
// lexicon holds them in at most the given number of blocks.
func (p *phrase) find(piece *piece, blocks uint64) error {
	s, l := p.s, &p.literal
	defer s.explain.during(PhaseWords)()
	if piece.found() {
		return nil
	}
	if !piece.located {
		if err := s.locatePiece(piece); err != nil {
			return err
		}
	}
	if piece.many || uint64(len(piece.blocks)) > blocks {
		return nil
	}
	piece.words = []wordMatch{}
	exact := l.Text[piece.offset : piece.offset+len(piece.text)]
	if err := s.words.AnnounceBlocks(piece.blocks); err != nil {
		return err
	}
	for _, number := range piece.blocks {
		if err := s.tick(); err != nil {
			return err
		}
		if err := s.words.Block(number, &s.lexicon); err != nil {
			return err
		}
		s.reads.LexiconBlocks++
		for i := range s.lexicon.Len() {
			if !piece.fits(s.lexicon.Word(i), exact, l.CaseSensitive) {
				continue
			}
			piece.words = append(piece.words, wordMatch{word: s.lexicon.First + uint32(i), matches: oneOf(rank.Inside)})
		}
		if len(piece.words) > mostPieceWords {
			piece.words, piece.many = nil, true
			return nil
		}
	}
	if err := s.announceLists(piece.words); err != nil {
		return err
	}
	for i := range piece.words {
		list, err := s.words.List(piece.words[i].word)
		if err != nil {
			return err
		}
		piece.df += uint64(list.DF())
	}
	s.reads.Words += uint64(len(piece.words))
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
