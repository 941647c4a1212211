package shard

import (
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// If the query has one text, which only reading decides, the length of a content and the counts of the text's rarest words in it
// bound the score. A TopK search looks at the candidates in the order of that bound: the best matches of a common phrase are often
// in short files, and the others need not be read.

// boundedBlob is a candidate with the highest score that a document with its content can reach if its path does not match.
type boundedBlob struct {
	bound float64
	blob  uint32
}

func compareBounded(a, b *boundedBlob) int { return compareScored(a.bound, a.blob, b.bound, b.blob) }

// knowsBounds reports whether the search can look at candidates in the order of their bounds.
func (s *search) knowsBounds() bool {
	_, alone := s.root.(*atomNode)
	return alone && s.opts.Mode == TopK && s.onlyText != nil && s.inContent && s.terms == 1 && len(s.defined) == 0 && s.workers == nil &&
		s.onlyText.wordPlaces() != nil && s.onlyText.wordPlaces().Cost() > uint64(s.opts.MaxFiles)*leastBounded &&
		!slices.ContainsFunc(s.nameAtoms, func(a *nameAtom) bool { return !a.candidates.narrow && a.hits == nil })
}

// leastBounded is the least number of places, for each document that is wanted, for which the order pays.
const leastBounded = 16

// scanByBound looks first at the documents with a match in their path, and then at the others in the order of their bounds.
func (s *search) scanByBound() error {
	named, err := s.scanNamed()
	if err != nil {
		return err
	}
	candidates, err := s.boundedBlobs(named)
	if err != nil {
		return err
	}
	text := func(superblocks []uint32, blob uint32) ([]uint32, error) {
		return s.appendPlaces(superblocks, blob, s.onlyText.wordPlaces().tallies)
	}
	for taken := 0; len(candidates) > 0; candidates, taken = dropFirst(candidates, compareBounded), taken+1 {
		c := candidates[0]
		// The documents of a blob have its number or a higher one.
		if !s.mayReach(c.bound, c.blob) {
			s.leaveOutFrom(c.blob)
			break // so no later one may be either
		}
		if err := s.announceBounded(candidates, taken, text); err != nil {
			return err
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
	places := l.cand.(*wordPlaces).again() //nolint:forcetypeassert // knowsBounds has checked
	places.announced = len(places.tallies) // scanByBound announces them
	l.cand = places
	l.started, l.done = false, false
}

// boundedBlobs returns the other blobs that have places, with their bounds, as a heap.
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
			bound = min(bound, after.Score) // anything above was on an earlier page
		}
		candidates = push(candidates, boundedBlob{bound, blob}, compareBounded)
	}
	return candidates, nil
}

// wholePiece says where a word of a literal is, in superblocks that are not opaque.
type wholePiece struct {
	tallies []tally // the remaining ones
	df      uint64
}

// mostWholePieces is the most words of a literal that are looked up.
const mostWholePieces = 2

// wholePieces looks up the rarest words of a literal: a match of whole words has each of them as a whole word. It reads at most
// that many postings and skips the words that would take more.
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

// in returns how often the word is in superblocks [first, end), up to rank.Enough. Callers pass ascending numbers.
func (p *wholePiece) in(first, end uint32) (words int) {
	p.tallies = p.tallies[seekTally(p.tallies, 0, first):]
	for i := 0; i < len(p.tallies) && p.tallies[i].superblock < end && words < rank.Enough; i++ {
		words += int(p.tallies[i].matches.whole())
	}
	return min(words, rank.Enough)
}
