package shard

import (
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// nameAtom finds a text in the paths of documents.
type nameAtom struct {
	s       *search
	matcher regex.Matcher
	needs   regex.Needs
	// candidates narrow the documents whose path may match.
	candidates nameCandidates

	// docs are the documents that match, ascending, and blobs theirs; valid
	// when enumerated.
	docs, blobs []uint32
	enumerated  bool
	ranges      []span
}

// pathsPerSuperblock is about how many paths a superblock of names holds: 108
// in the source of Go 1.26, whose paths have 38 bytes on average.
const pathsPerSuperblock = 100

// prepare looks the needs up in the n-grams of the names.
func (a *nameAtom) prepare() (err error) {
	a.candidates, err = a.s.nameCandidates(a.needs)
	return err
}

// plan enumerates matching documents by the n-grams of their paths.
func (a *nameAtom) plan() (plan, error) {
	if !a.candidates.narrow {
		return plan{}, nil
	}
	estimate := a.candidates.superblocks * pathsPerSuperblock
	return plan{estimate: estimate, setup: estimate, open: a.open}, nil
}

// open enumerates the matching documents, and from them their blobs.
func (a *nameAtom) open() (blobs, error) {
	if !a.enumerated {
		if err := a.enumerate(); err != nil {
			return nil, err
		}
		a.enumerated = true
	}
	return &blobList{rest: a.blobs}, nil
}

func (a *nameAtom) enumerate() error {
	docs, err := a.s.docsAround(a.candidates.lists)
	if err != nil {
		return err
	}
	a.docs, a.blobs = docs[:0], a.blobs[:0]
	var path []byte
	for _, doc := range docs {
		if err := a.s.tick(); err != nil {
			return err
		}
		if path, err = a.s.docs.AppendPath(path[:0], doc); err != nil {
			return err
		}
		if _, _, ok := a.matcher.Find(path, 0); !ok {
			continue
		}
		blob, err := a.s.docs.Blob(doc)
		if err != nil {
			return err
		}
		a.docs, a.blobs = append(a.docs, doc), append(a.blobs, blob)
	}
	slices.Sort(a.blobs)
	a.blobs = slices.Compact(a.blobs)
	return nil
}

func (a *nameAtom) matches(d *document) (bool, error) {
	if a.enumerated {
		_, ok := slices.BinarySearch(a.docs, d.id)
		return ok, nil
	}
	path, err := d.loadPath()
	if err != nil {
		return false, err
	}
	_, _, ok := a.matcher.Find(path, 0)
	return ok, nil
}

// spans returns the ranges in the document's path, valid until the next call.
func (a *nameAtom) spans(d *document) ([]span, error) {
	a.ranges = a.ranges[:0]
	if a.enumerated {
		if _, ok := slices.BinarySearch(a.docs, d.id); !ok {
			return nil, nil
		}
	}
	path, err := d.loadPath()
	if err != nil {
		return nil, err
	}
	for start, end := range regex.Ranges(a.matcher, path) {
		a.ranges = append(a.ranges, span{uint32(start), uint32(end), rank.Of(path, start, end)})
	}
	return a.ranges, nil
}

// nameCandidates are the places in the names of which every match in a path
// has one.
type nameCandidates struct {
	narrow      bool // false when that could be anywhere
	superblocks uint64
	lists       []places
}

// nameCandidates looks up what is needed: of several needs the rarest.
func (s *search) nameCandidates(n regex.Needs) (found nameCandidates, err error) {
	switch n := n.(type) {
	case regex.Literal:
		cand, ok, err := s.ngramPlaces(s.names, ngram.LiteralWindows(n.Text, n.CaseSensitive))
		if err != nil || !ok {
			return found, err
		}
		return nameCandidates{true, cand.Cost(), []places{cand}}, nil
	case regex.And:
		for _, c := range n.Children {
			part, err := s.nameCandidates(c)
			if err != nil {
				return found, err
			}
			if part.narrow && (!found.narrow || part.superblocks < found.superblocks) {
				found = part
			}
		}
	case regex.Or:
		found.narrow = true
		for _, c := range n.Children {
			part, err := s.nameCandidates(c)
			if err != nil || !part.narrow {
				return nameCandidates{}, err
			}
			found.superblocks += part.superblocks
			found.lists = append(found.lists, part.lists...)
		}
	}
	return found, nil
}

// docsAround returns the documents, ascending, whose path lies at least partly
// in a candidate block: the rarest n-gram of a match starts in one.
func (s *search) docsAround(lists []places) (docs []uint32, err error) {
	for _, cand := range lists {
		next := uint32(0)
		for sb, blocks, ok := cand.SeekGE(0); ok; sb, blocks, ok = cand.SeekGE(sb + 1) {
			if err := s.tick(); err != nil {
				return nil, err
			}
			for b := uint64(0); blocks != 0; b, blocks = b+1, blocks>>1 {
				if blocks&1 == 0 {
					continue
				}
				start := uint64(sb)*docstore.SuperblockSize + b*docstore.BlockSize
				if docs, next, err = s.docsIn(docs, next, start, start+docstore.BlockSize); err != nil {
					return nil, err
				}
			}
		}
		if err := cand.Err(); err != nil {
			return nil, err
		}
	}
	if len(lists) > 1 {
		slices.Sort(docs)
		docs = slices.Compact(docs)
	}
	return docs, nil
}

// docsIn appends the documents from next on whose path overlaps the names in [start, end).
func (s *search) docsIn(docs []uint32, next uint32, start, end uint64) ([]uint32, uint32, error) {
	if total := s.docs.NamesLen(); start >= total {
		return docs, next, nil
	} else if end > total {
		end = total
	}
	first, err := s.docs.DocAt(start)
	if err != nil {
		return nil, 0, err
	}
	last, err := s.docs.DocAt(end - 1)
	if err != nil {
		return nil, 0, err
	}
	for doc := max(next, first); doc <= last; doc++ {
		docs = append(docs, doc)
	}
	return docs, max(next, last+1), nil
}
