package shard

import (
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/rank"
)

// Where the query has one text, which only reading decides, the length of a content and how often the rarest word of the text is
// there bound the score. A TopK search looks at the candidates in the order of that bound: many a common phrase
// is among the best in short files, and the others need not be read.

// boundedBlob is a candidate and the most that a document with its content may score if its path does not match.
type boundedBlob struct {
	bound float64
	blob  uint32
}

// knowsBounds reports whether candidates can be looked at in the order of their bounds.
func (s *search) knowsBounds() bool {
	_, alone := s.root.(*atomNode)
	return alone && s.opts.Mode == TopK && s.onlyText != nil && s.inContent && s.terms == 1 && len(s.defined) == 0 && s.workers == nil &&
		s.onlyText.countedPlaces() != nil && s.onlyText.countedPlaces().Cost() > uint64(s.opts.MaxFiles)*leastBounded &&
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
	slices.SortFunc(candidates, func(a, b boundedBlob) int { return compareScored(a.bound, a.blob, b.bound, b.blob) })
	for _, c := range candidates {
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

// boundedBlobs returns the other blobs with places, and their bounds.
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
	tallies := s.onlyText.countedPlaces().tallies
	candidates := make([]boundedBlob, 0, min(len(tallies), int(s.content.Blobs())))
	for len(tallies) > 0 {
		first := tallies[0].superblock
		blob, end, err := s.blobOf(&cursor, first)
		if err := cmp.Or(err, s.tick()); err != nil {
			return nil, err
		}
		matches, n := mostIn(tallies, end)
		if tallies = tallies[n:]; named.has(blob) {
			continue
		}
		bound := rank.Bound(rank.Content(rank.Word, matches, int(lengths[first])), s.terms, rank.NoName, false)
		if after := s.opts.After; after != nil {
			bound = min(bound, after.Score) // what is above was on an earlier page
		}
		candidates = append(candidates, boundedBlob{bound, blob})
	}
	return candidates, nil
}
