package shard

import (
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// nameAtom finds a text in the paths of documents.
type nameAtom struct {
	s       *search
	matcher regex.Matcher
	needs   regex.Needs

	// docs are the documents that match, ascending; valid when enumerated.
	docs       []uint32
	enumerated bool
	ranges     []span
}

// pathsPerSuperblock is about how many paths a superblock of names holds: 108
// in the source of Go 1.26, whose paths have 38 bytes on average.
const pathsPerSuperblock = 100

// plan enumerates matching documents by the n-grams of their paths.
func (a *nameAtom) plan() (plan, error) {
	estimate, narrow, err := a.s.nameEstimate(a.needs)
	if err != nil || !narrow {
		return plan{}, err
	}
	return plan{estimate: estimate * pathsPerSuperblock, open: a.open}, nil
}

// open enumerates the matching documents, and from them their blobs.
func (a *nameAtom) open() (blobs, error) {
	docs, _, err := a.s.nameCandidates(a.needs)
	if err != nil {
		return nil, err
	}
	a.docs = docs[:0]
	list := make([]uint32, 0, len(docs))
	var path []byte
	for _, doc := range docs {
		if err := a.s.tick(); err != nil {
			return nil, err
		}
		if path, err = a.s.docs.AppendPath(path[:0], doc); err != nil {
			return nil, err
		}
		if _, _, ok := a.matcher.Find(path, 0); !ok {
			continue
		}
		blob, err := a.s.docs.Blob(doc)
		if err != nil {
			return nil, err
		}
		a.docs, list = append(a.docs, doc), append(list, blob)
	}
	a.enumerated = true
	slices.Sort(list)
	return &blobList{rest: slices.Compact(list)}, nil
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
	path, err := d.loadPath()
	if err != nil {
		return nil, err
	}
	a.ranges = a.ranges[:0]
	for start, end := range regex.Ranges(a.matcher, path) {
		a.ranges = append(a.ranges, span{uint32(start), uint32(end), rank.Of(path, start, end)})
	}
	return a.ranges, nil
}

// nameEstimate bounds the superblocks of names that nameCandidates would visit.
func (s *search) nameEstimate(n regex.Needs) (estimate uint64, narrow bool, err error) {
	switch n := n.(type) {
	case regex.Literal:
		cand, ok, err := s.lookup(s.names, n)
		if err != nil || !ok {
			return 0, false, err
		}
		return cand.Cost(), true, nil
	case regex.And:
		best := uint64(0)
		for _, c := range n.Children {
			e, ok, err := s.nameEstimate(c)
			if err != nil {
				return 0, false, err
			}
			if ok && (!narrow || e < best) {
				best, narrow = e, true
			}
		}
		return best, narrow, nil
	case regex.Or:
		for _, c := range n.Children {
			e, ok, err := s.nameEstimate(c)
			if err != nil || !ok {
				return 0, false, err
			}
			estimate += e
		}
		return estimate, true, nil
	}
	return 0, false, nil
}

// nameCandidates returns the documents, ascending, whose path may hold what is
// needed; narrow is false when that could be any.
func (s *search) nameCandidates(n regex.Needs) (docs []uint32, narrow bool, err error) {
	switch n := n.(type) {
	case regex.Literal:
		cand, ok, err := s.lookup(s.names, n)
		if err != nil || !ok {
			return nil, false, err
		}
		docs, err := s.docsAround(cand)
		return docs, true, err
	case regex.And:
		for _, c := range n.Children {
			some, ok, err := s.nameCandidates(c)
			if err != nil {
				return nil, false, err
			}
			if ok && narrow {
				docs = intersect(docs, some)
			} else if ok {
				docs, narrow = some, true
			}
		}
		return docs, narrow, nil
	case regex.Or:
		for _, c := range n.Children {
			some, ok, err := s.nameCandidates(c)
			if err != nil || !ok {
				return nil, false, err
			}
			docs = append(docs, some...)
		}
		slices.Sort(docs)
		return slices.Compact(docs), true, nil
	}
	return nil, false, nil
}

// docsAround returns the documents whose path lies at least partly in a
// candidate block: the rarest n-gram of a match starts in one.
func (s *search) docsAround(cand *postings.Candidates) (docs []uint32, err error) {
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
	return docs, cand.Err()
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

// intersect keeps in a, in place, what is also in b; both ascend.
func intersect(a, b []uint32) []uint32 {
	kept := a[:0]
	for _, x := range a {
		i, ok := slices.BinarySearch(b, x)
		if b = b[i:]; ok {
			kept = append(kept, x)
		}
	}
	return kept
}
