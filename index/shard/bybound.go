package shard

import (
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// Where the query has one text, which only reading decides, the length of a content and how often the rarest words of the text are
// there bound the score. A TopK search looks at the candidates in the order of that bound: many a common phrase
// is among the best in short files, and the others need not be read.

// boundedBlob is a candidate and the most that a document with its content may score if its path does not match.
type boundedBlob struct {
	bound float64
	blob  uint32
}

func compareBounded(a, b *boundedBlob) int { return compareScored(a.bound, a.blob, b.bound, b.blob) }

// knowsBounds reports whether candidates can be looked at in the order of their bounds.
func (s *search) knowsBounds() bool {
	_, alone := s.root.(*atomNode)
	return alone && s.opts.Mode == TopK && s.onlyText != nil && s.inContent && s.terms == 1 && len(s.defined) == 0 && s.workers == nil &&
		s.onlyText.wordPlaces() != nil && s.onlyText.wordPlaces().Cost() > uint64(s.opts.MaxFiles)*leastBounded &&
		!slices.ContainsFunc(s.nameAtoms, func(a *nameAtom) bool { return !a.candidates.narrow && a.hits == nil })
}

// leastBounded is how many places there are for each document that is wanted, for their order to matter.
const leastBounded = 16

// scanByBound looks at the documents with a match in their path, and then at the others in the order of their bounds.
func (s *search) scanByBound() error {
	named, err := s.scanNamed()
	if err != nil {
		return err
	}
	candidates, err := s.boundedBlobs(named)
	if err != nil {
		return err
	}
	for ; len(candidates) > 0; candidates = dropFirst(candidates, compareBounded) {
		c := candidates[0]
		// The documents of a blob have its number or a higher one.
		if !s.mayReach(c.bound, c.blob) {
			s.leaveOutFrom(c.blob)
			break // and so is none of the others
		}
		s.onlyText.anchors[0].rewind()
		if err := cmp.Or(s.tick(), s.eachOf(c.blob, s.hit)); err != nil {
			return err
		}
	}
	return nil
}

// scanNamed looks at the blobs of documents with a match in their path, and returns them.
func (s *search) scanNamed() (named runs, err error) {
	for _, a := range s.nameAtoms {
		if _, err := a.enumerate(anyCost); err != nil {
			return nil, err
		}
		blobs, err := a.matchingBlobs()
		if err != nil {
			return nil, err
		}
		named = named.or(blobs)
	}
	for _, run := range named {
		for blob := run.From; blob < run.To; blob++ {
			if err := cmp.Or(s.tick(), s.eachOf(blob, s.hit)); err != nil {
				return nil, err
			}
		}
	}
	return named, nil
}

// rewind starts again from the first place.
func (l *literalBlobs) rewind() {
	l.cand = l.cand.(*wordPlaces).again() //nolint:forcetypeassert // knowsBounds has asked
	l.started, l.done = false, false
}

// boundedBlobs returns the other blobs with places and their bounds, as a heap.
func (s *search) boundedBlobs(named runs) ([]boundedBlob, error) {
	lengths, err := s.lengths()
	if err != nil {
		return nil, err
	}
	starts, err := s.content.SuperblockStarts()
	if err != nil {
		return nil, err
	}
	cursor := blobOfSuperblocks{starts: starts}
	tallies := s.onlyText.wordPlaces().tallies
	whole, err := s.wholePieces(s.onlyText.alone, uint64(len(tallies))*verifyPays)
	if err != nil {
		return nil, err
	}
	candidates := make([]boundedBlob, 0, min(len(tallies), int(s.content.Blobs())))
	for len(tallies) > 0 {
		first := tallies[0].superblock
		blob, end, err := s.blobOf(&cursor, first)
		if err := cmp.Or(err, s.tick()); err != nil {
			return nil, err
		}
		matches, n := mostIn(tallies, end)
		here := tallies[:n]
		if tallies = tallies[n:]; named.has(blob) {
			continue
		}
		words := matches
		if !slices.ContainsFunc(here, func(t tally) bool { return t.opaque }) {
			for i := range whole {
				words = min(words, whole[i].in(uint32(cursor.first), end))
			}
		}
		length := int(lengths[first])
		content := max(rank.Content(rank.Word, words, length), rank.Content(rank.Partial, matches, length))
		bound := rank.Bound(content, s.terms, rank.NoName, false)
		if after := s.opts.After; after != nil {
			bound = min(bound, after.Score) // what is above was on an earlier page
		}
		candidates = push(candidates, boundedBlob{bound, blob}, compareBounded)
	}
	return candidates, nil
}

// wholePiece is where a word of a literal is, in superblocks that are not opaque.
type wholePiece struct {
	tallies []tally // those that are left
	df      uint64
}

// mostWholePieces is how many words of a literal are looked up.
const mostWholePieces = 2

// wholePieces looks up the rarest words of a literal: a match that is one of whole words has each of them as a whole word. It reads
// at most that many postings, and leaves out the words that would take more.
func (s *search) wholePieces(l regex.Literal, most uint64) ([]wholePiece, error) {
	var found []wholePiece
	var spelled [][]wordMatch
	for _, p := range piecesOf(l.Text) {
		text := l.Text[p.offset : p.offset+len(p.text)]
		words, lists, err := s.spellings(regex.Literal{Text: text, CaseSensitive: l.CaseSensitive}, mostSpellings)
		if err != nil {
			return nil, err
		}
		if words == nil {
			continue
		}
		df := uint64(0)
		for i := range lists {
			df += uint64(lists[i].DF())
		}
		n, _ := slices.BinarySearchFunc(found, df, func(p wholePiece, df uint64) int { return cmp.Compare(p.df, df) })
		found, spelled = slices.Insert(found, n, wholePiece{df: df}), slices.Insert(spelled, n, words)
	}
	found = found[:min(len(found), mostWholePieces)]
	for i := range found {
		if most < found[i].df {
			return found[:i], nil
		}
		most -= found[i].df
		var err error
		if found[i].tallies, err = s.tallies(spelled[i], false); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// in is how often the word is in superblocks [first, end), up to rank.Enough. Calls ascend.
func (p *wholePiece) in(first, end uint32) (words int) {
	p.tallies = p.tallies[seekTally(p.tallies, 0, first):]
	for i := 0; i < len(p.tallies) && p.tallies[i].superblock < end && words < rank.Enough; i++ {
		words += int(p.tallies[i].matches.whole())
	}
	return min(words, rank.Enough)
}
