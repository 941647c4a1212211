package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/regex"
)

// A literal with bytes that are not word bytes falls into pieces of words, which fix where the
// words end: for "let Some(n" a word ends in let, one is Some, and one begins with n. The search
// reads the text where the words of several pieces start in blocks that fit together, and the
// n-grams between the words do too.

// phrase narrows down the places of such a literal. The rarest of its pieces leads, and the others
// keep the leading places that have one of theirs nearby. The cheapest lookups come first. A lookup
// that costs more than verifying the places that are left is skipped.
type phrase struct {
	places
	s       *search
	literal regex.Literal
	pieces  []piece // not yet compared with the places; that of the n-grams comes first
	opaque  runs    // superblocks in which words are unknown, or some of them
	near    []tally // the places of n-grams there
}

// fewPlaces is a number of places that is not worth narrowing further.
const fewPlaces = 64

// phrasePlaces finds the places of a literal by its n-grams between words, and by its words if these may narrow them down. It returns nil if
// they may be anywhere.
func (s *search) phrasePlaces(l regex.Literal) (*places, error) {
	ngrams, some, err := s.ngramPlaces(s.shardText, slices.DeleteFunc(s.literalWindows(l), func(w ngram.Window) bool { return w.OfWords }))
	if err != nil {
		return nil, err
	}
	p := &phrase{s: s, literal: l}
	if some {
		p.pieces = append(p.pieces, piece{ngrams: ngrams, df: ngrams.Cost()})
	}
	few := some && ngrams.Cost() <= fewPlaces
	// Without case, runes beyond ASCII may have variants of other lengths, so that the offsets of pieces are unknown.
	if !few && (l.CaseSensitive || isASCII(l.Text)) {
		p.pieces = append(p.pieces, piecesOf(l.Text)...)
	}
	lead, err := p.lead()
	switch {
	case lead == nil || err != nil:
		return nil, err
	case !some:
		return s.placesBeside(l, lead)
	}
	where := runs{}.add(0, s.content.Superblocks())
	p.byNgrams = len(p.pieces) == 0
	switch {
	case !p.byNgrams:
		p.opaque, err = s.nearOpaque()
	case !few && s.among != nil && uint64(len(s.among.blobs)) < lead.df:
		p.within = s.among
		where, err = s.among.superblocks(s)
	}
	if err != nil {
		return nil, err
	}
	p.least, p.most = lead.starts()
	if p.tallies, err = p.placesOf(lead, where); err != nil {
		return nil, err
	}
	slices.SortStableFunc(p.pieces, func(a, b piece) int { return cmp.Compare(a.order(), b.order()) })
	for i := range p.pieces {
		if piece := &p.pieces[i]; len(p.tallies) > 0 || piece.ngrams != nil {
			if err := p.meet(piece); err != nil {
				return nil, err
			}
		}
	}
	p.addOpaque(p.near, ngrams)
	return &p.places, nil
}

// lead finds the pieces that are in few blocks of the lexicon, and takes the rarest, if there is one.
func (p *phrase) lead() (*piece, error) {
	lead, left := -1, uint64(math.MaxUint64)
	for i := range p.pieces {
		piece := &p.pieces[i]
		if left <= fewPlaces {
			break
		}
		if err := p.find(piece, max(left/leadShare, fewBlocks)); err != nil {
			return nil, err
		}
		if piece.found() && piece.df < left {
			lead, left = i, piece.df
		}
	}
	if lead < 0 {
		return nil, nil
	}
	found := p.pieces[lead]
	p.pieces = slices.Delete(p.pieces, lead, lead+1)
	return &found, nil
}

// placesBeside finds the places of a literal all of whose n-grams are left to words, by its rarest piece.
func (s *search) placesBeside(l regex.Literal, lead *piece) (*places, error) {
	least, most := lead.starts()
	if !l.CaseSensitive {
		most *= utf8.UTFMax // runes that fold to the letters before may be longer
	}
	return s.placesOfWords(lead.words, least, most, slices.DeleteFunc(s.literalWindows(l), func(w ngram.Window) bool {
		return w.MinOffset < lead.offset || w.MinOffset >= lead.offset+len(lead.text)
	}))
}

// placesOf returns the places of a piece. N-grams are looked for only in some superblocks, and where words are unknown.
func (p *phrase) placesOf(piece *piece, where runs) (found []tally, err error) {
	if piece.ngrams == nil {
		return p.s.tallies(piece.words, withMasks, nil)
	}
	if len(p.opaque) > 0 {
		where = where.or(p.opaque)
	}
	found, err = p.s.ngramsIn(piece.ngrams, where)
	for _, t := range found {
		if p.opaque.has(t.superblock) {
			p.near = append(p.near, t)
		}
	}
	return found, err
}

// meet keeps the places with one of the piece in the right distance, if that pays.
func (p *phrase) meet(piece *piece) error {
	left := uint64(len(p.tallies))
	if err := p.find(piece, left); err != nil {
		return err
	}
	if !piece.found() || piece.ngrams == nil && piece.df > verifyPays*p.without(piece) {
		return nil
	}
	least, most := piece.starts()
	least, most = least-p.most, most-p.least
	var where runs
	for i := 0; piece.ngrams != nil && i < len(p.tallies); i++ {
		first, last := p.tallies[i].around(least, most)
		where = where.add(first, last+1)
	}
	found, err := p.placesOf(piece, where)
	p.tallies = keepNear(p.tallies, found, least, most)
	return err
}

// without is how many places the piece leaves out, if they have it no more often than other superblocks do.
func (p *phrase) without(piece *piece) uint64 {
	all := uint64(p.s.content.Superblocks())
	return uint64(len(p.tallies)) * (all - min(piece.df, all)) / all
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}
