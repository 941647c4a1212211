package search

import (
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// nameAtom finds a text in the paths of documents.
type nameAtom struct {
	*matching
	s *search
	// candidates narrow down the documents whose path may match.
	candidates nameCandidates
	// placed says that the search needs how each path matches, not only whether it does.
	placed bool
	// within, if not nil, are the only documents that can match.
	within runs
	// hits are nil until the matching documents have been enumerated.
	hits   *nameHits
	blobs  runs      // of the hits, once asked for
	walker *nameWalk // enumerates the hits, once begun
	ranges []span
}

// nameHits are the documents whose paths match. A search finds them once and does not change them.
type nameHits struct {
	docs   runs
	places []namePlace // of each document, if placed
}

// namePlace says how well a path matches, and how often.
type namePlace struct {
	name   rank.Name
	ranges uint16
}

// pathsPerSuperblock is about how many paths a superblock of names holds: 108
// in the source of Go 1.26, whose paths have 38 bytes on average.
const pathsPerSuperblock = 100

// prepare looks up the needs in the n-grams of the names.
func (a *nameAtom) prepare() (err error) {
	a.hits = a.s.knownOf(a.matching).names
	a.candidates, err = a.s.nameCandidates(a.needs)
	return err
}

// plan enumerates matching documents by the n-grams of their paths.
func (a *nameAtom) plan() plan {
	if a.hits != nil {
		return plan{estimate: a.hits.docs.count(), open: a.open}
	}
	looks := uint64(a.s.docs.Len())
	if a.candidates.narrow {
		looks = min(looks, a.candidates.superblocks*pathsPerSuperblock)
	}
	return plan{estimate: looks, open: a.open}
}

// open enumerates the blobs of matching documents.
func (a *nameAtom) open(budget uint64) (blobs, error) {
	if ok, err := a.enumerate(budget); !ok || err != nil {
		return nil, err
	}
	found, err := a.matchingBlobs()
	return &blobRuns{rest: found}, err
}

// matchingBlobs returns the blobs of the matching documents, which have been enumerated.
func (a *nameAtom) matchingBlobs() (_ runs, err error) {
	if a.blobs == nil {
		a.blobs, err = a.s.blobsOf(a.hits.docs)
	}
	return a.blobs, err
}

// documents returns the documents whose path matches.
func (a *nameAtom) documents(budget uint64) (runs, bool, error) {
	ok, err := a.enumerate(budget)
	if !ok || err != nil {
		return nil, false, err
	}
	return a.hits.docs, true, nil
}

// enumerate finds the matching documents. It returns false once it has looked at more paths than
// budget; a call with a larger budget continues from there.
func (a *nameAtom) enumerate(budget uint64) (ok bool, err error) {
	if a.hits != nil || budget == 0 {
		return a.hits != nil, nil
	}
	defer a.s.explain.during(PhaseNames)()
	if a.walker == nil {
		a.walker = &nameWalk{nameAtom: a}
		if err := a.walker.begin(); err != nil {
			return false, err
		}
	}
	w := a.walker
	if ok, err = w.walk(budget); !ok || err != nil {
		return false, err
	}
	a.hits = &w.found
	a.s.knownOf(a.matching).names = a.hits
	return true, nil
}

// place reports whether a path matches, and how.
func (a *nameAtom) place(path []byte) (p namePlace, ok bool) {
	a.ranges, p.name = a.appendRanges(a.ranges[:0], path)
	if p.ranges = uint16(len(a.ranges)); p.ranges > 0 {
		return p, true
	}
	_, _, ok = a.matcher.Find(path, 0) // the match may be empty
	return p, ok
}

func (a *nameAtom) matches(d *document) (bool, error) {
	if a.hits != nil {
		return a.hits.docs.has(d.id), nil
	}
	path, err := d.loadPath()
	if err != nil {
		return false, err
	}
	_, _, ok := a.matcher.Find(path, 0)
	return ok, nil
}

// spans returns the ranges in the document's path, which are valid until the next call, and the best place of one.
func (a *nameAtom) spans(d *document) (ranges []span, best rank.Name, err error) {
	if a.hits != nil && !a.hits.docs.has(d.id) {
		return nil, best, nil
	}
	path, err := d.loadPath()
	if err == nil {
		a.ranges, best = a.appendRanges(a.ranges[:0], path)
	}
	return a.ranges, best, err
}

// appendRanges appends the ranges in a path, and returns the best place of one.
func (a *nameAtom) appendRanges(ranges []span, path []byte) (_ []span, best rank.Name) {
	for start, end := range regex.Ranges(a.matcher, path) {
		best = max(best, rank.OfName(path, start, end))
		ranges = append(ranges, span{uint32(start), uint32(end)})
	}
	return ranges, best
}

// nameCandidates are places in the names such that every match in a path has one of them.
type nameCandidates struct {
	narrow      bool // false if a match may be anywhere
	superblocks uint64
	lists       []*inverted.Candidates
}

// nameCandidates looks up the needs; of several that must all be met, the rarest.
func (s *search) nameCandidates(n regex.Needs) (nameCandidates, error) {
	found, some, err := regex.Fold(n, func(l regex.Literal) (nameCandidates, bool, error) {
		cand, ok, err := s.ngramPlaces(s.names, s.literalWindows(l))
		if err != nil || !ok {
			return nameCandidates{}, false, err
		}
		return nameCandidates{superblocks: cand.Cost(), lists: []*inverted.Candidates{cand}}, true, nil
	}, func(parts []nameCandidates) nameCandidates {
		return slices.MinFunc(parts, func(a, b nameCandidates) int { return cmp.Compare(a.superblocks, b.superblocks) })
	}, func(parts []nameCandidates) (joined nameCandidates) {
		for _, part := range parts {
			joined.superblocks += part.superblocks
			joined.lists = append(joined.lists, part.lists...)
		}
		return joined
	})
	found.narrow = some
	return found, err
}

// namesAround returns the stretches of names around the candidate blocks, ascending: the rarest
// n-gram of a match starts in one of these blocks.
func (s *search) namesAround(lists []*inverted.Candidates) (stretches []stretch, err error) {
	total := int64(s.docs.NamesLen())
	for _, cand := range lists {
		for sb, blocks, ok := cand.SeekGE(0); ok; sb, blocks, ok = cand.SeekGE(sb + 1) {
			if err := s.tick(); err != nil {
				return nil, err
			}
			for b := int64(0); blocks != 0; b, blocks = b+1, blocks>>1 {
				lo := int64(sb)*docstore.SuperblockSize + b*docstore.BlockSize
				if blocks&1 == 0 || lo >= total {
					continue
				}
				stretches = addStretch(stretches, stretch{lo, min(total, lo+docstore.BlockSize)})
			}
		}
		if err := cand.Err(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(stretches, func(a, b stretch) int { return cmp.Compare(a.lo, b.lo) })
	joined := stretches[:0]
	for _, st := range stretches {
		joined = addStretch(joined, st)
	}
	return joined, nil
}
