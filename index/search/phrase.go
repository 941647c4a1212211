package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/regex"
)

// A literal with bytes that are not word bytes falls into pieces of words, which fix where the
// words end: for "let Some(n" a word ends in let, one is Some, and one begins with n. The search
// reads the text where the words of several pieces start in blocks that fit together, and the
// n-grams between the words do too.

// phrase narrows down the places of such a literal, or has those of its n-grams. The rarest of its pieces and n-grams leads, and
// the others keep the leading places that have one of theirs nearby. The cheapest lookups come
// first. A lookup that costs more than verifying the places that are left is skipped.
type phrase struct {
	s       *search
	literal regex.Literal
	ngrams  *inverted.Candidates
	pieces  []piece // not yet compared with the places
	// tallies are the places that are left. They start between least and most bytes after the start
	// of a match.
	tallies     []tally
	least, most int
}

// phrasePlaces finds the places of a literal by its windows, and by its words if these may narrow them down. Without case, runes
// beyond ASCII may have variants of other lengths, so that the offsets of pieces are unknown.
func (s *search) phrasePlaces(l regex.Literal, windows []ngram.Window) (*places, error) {
	cand, _, err := s.ngramPlaces(s.shardText, windows)
	if err != nil {
		return nil, err
	}
	p := &phrase{s: s, literal: l, ngrams: cand}
	if cand.Cost() <= fewPlaces || !l.CaseSensitive && !isASCII(l.Text) {
		var within *among
		if cand.Cost() > fewPlaces {
			within = s.among
		}
		err := p.fromNgrams(within)
		return &places{tallies: p.tallies, least: p.least, most: p.most, byNgrams: true, within: within}, err
	}
	p.pieces = piecesOf(l.Text)
	if err := p.lead(); err != nil {
		return nil, err
	}
	if err := p.meetPieces(); err != nil {
		return nil, err
	}
	found := &places{tallies: p.tallies, least: p.least, most: p.most}
	_, err = s.addOpaque(found, windows, p.ngrams)
	return found, err
}

// fewPlaces is a number of places that is not worth narrowing further.
const fewPlaces = 64

// Costs are compared in postings: one of a long list with its mask takes 136 to 244 ns, finding the words of a block of the lexicon with their postings 4.2 to 10.4 µs,
// and verifying a place 6.6 to 20 µs (BenchmarkCosts, on a busy machine).
const (
	// verifyPays is how many postings are read for each place that they may save.
	verifyPays = 48
	// A piece may lead if its words are in at most fewBlocks of the lexicon, or in at most one
	// block for each leadShare places of the rarest so far. After that, one block may be read for
	// each place that is left.
	fewBlocks = 8
	leadShare = 32
)

// lead finds the pieces that are in few blocks of the lexicon, and the places of the rarest piece,
// or of the n-grams. Words that begin with a piece are adjacent in the lexicon. Words that end in
// one are looked up by n-grams, and only if the other pieces are not rare.
func (p *phrase) lead() error {
	slices.SortStableFunc(p.pieces, func(a, b piece) int {
		if a.ends != b.ends {
			return cmp.Compare(b.offset, a.offset) // only the first piece has ends
		}
		return cmp.Compare(len(b.text), len(a.text))
	})
	left, lead := p.ngrams.Cost(), -1
	for i := range p.pieces {
		piece := &p.pieces[i]
		if left <= fewPlaces {
			break
		}
		if err := p.find(piece, max(left/leadShare, fewBlocks)); err != nil {
			return err
		}
		if piece.words != nil && piece.df < left {
			left, lead = piece.df, i
		}
	}
	if lead < 0 {
		return p.fromNgrams(nil)
	}
	piece := p.pieces[lead]
	p.pieces = slices.Delete(p.pieces, lead, lead+1)
	p.least, p.most = piece.starts()
	var err error
	p.tallies, err = p.s.tallies(piece.words, true, nil)
	return err
}

func (p *phrase) find(piece *piece, blocks uint64) error {
	return p.s.findPiece(piece, p.literal.CaseSensitive, p.literal.Text, blocks)
}

// fromNgrams uses the places of the n-grams, only those of some blobs unless that is nil.
func (p *phrase) fromNgrams(within *among) error {
	defer p.s.explain.during(PhasePostings)()
	p.least, p.most = p.ngrams.AnchorOffset()
	end := uint32(0) // of the run of blobs at hand
	for superblock, blocks, ok := p.ngrams.SeekGE(0); ok; superblock, blocks, ok = p.ngrams.SeekGE(superblock + 1) {
		if err := p.s.tick(); err != nil {
			return err
		}
		if within != nil && superblock >= end {
			first, next, ok, err := within.after(p.s, superblock)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if end = next; superblock < first {
				superblock = first - 1
				continue
			}
		}
		p.tallies = append(p.tallies, tally{superblock: superblock, blocks: blocks})
	}
	err := p.ngrams.Err()
	p.ngrams = nil
	return err
}

// meetPieces keeps the places with the other pieces nearby: first those rarer than the n-grams,
// then the n-grams, and then the remaining pieces.
func (p *phrase) meetPieces() error {
	slices.SortStableFunc(p.pieces, func(a, b piece) int { return cmp.Compare(a.order(), b.order()) })
	for i := range p.pieces {
		if len(p.tallies) == 0 {
			return nil
		}
		piece := &p.pieces[i]
		if p.ngrams != nil && (piece.words == nil || piece.df > p.ngrams.Cost()) {
			if err := p.meetNgrams(); err != nil {
				return err
			}
		}
		if err := p.meet(piece); err != nil {
			return err
		}
	}
	if p.ngrams == nil {
		return nil
	}
	return p.meetNgrams()
}

// order is the key for meeting pieces: the number of their postings, or of the blocks of the
// lexicon to be read.
func (p *piece) order() uint64 {
	if p.words != nil {
		return p.df
	}
	return 1<<48 + uint64(len(p.blocks))
}

// meet keeps the places with a word of the piece in the right distance, if that pays.
func (p *phrase) meet(piece *piece) error {
	left := uint64(len(p.tallies))
	if piece.words == nil {
		if err := p.find(piece, left); err != nil {
			return err
		}
	}
	if piece.words == nil || piece.df > verifyPays*left {
		return nil
	}
	found, err := p.s.tallies(piece.words, true, nil)
	least, most := piece.starts()
	p.tallies = keepNear(p.tallies, found, least-p.most, most-p.least)
	return err
}

// meetNgrams keeps the places with the literal's n-grams in the right distance.
func (p *phrase) meetNgrams() error {
	defer p.s.explain.during(PhasePostings)()
	least, most := p.ngrams.AnchorOffset()
	least, most = least-p.most, most-p.least
	var found []tally
	next := uint32(0)
	for _, t := range p.tallies {
		if err := p.s.tick(); err != nil {
			return err
		}
		first, last := t.around(least, most)
		for next = max(next, first); next <= last; next++ {
			superblock, blocks, ok := p.ngrams.SeekUpTo(next, last)
			if !ok {
				break
			}
			found = append(found, tally{superblock: superblock, blocks: blocks})
			next = superblock
		}
	}
	p.tallies = keepNear(p.tallies, found, least, most)
	err := p.ngrams.Err()
	p.ngrams = nil
	return err
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}
