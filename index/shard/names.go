package shard

import (
	"cmp"
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

	// docs are the documents that match, ascending, places how they do, and blobs are
	// those of the documents; valid when enumerated.
	docs, blobs []uint32
	places      []namePlace
	enumerated  bool
	ranges      []span
}

// namePlace is how well a path matches, and how often.
type namePlace struct {
	name   rank.Name
	ranges uint16
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
	stretches := []stretch{{0, int64(a.s.docs.NamesLen())}}
	var err error
	if a.candidates.narrow {
		if stretches, err = a.s.namesAround(a.candidates.lists); err != nil {
			return err
		}
	}
	a.docs, a.places = a.docs[:0], a.places[:0]
	for _, st := range stretches {
		for st.lo < st.hi {
			if st.lo, err = a.enumerateIn(st.lo, min(st.hi, st.lo+namesStep)); err != nil {
				return err
			}
		}
	}
	if a.blobs, err = a.s.docs.AppendBlobs(a.blobs[:0], a.docs); err != nil {
		return err
	}
	slices.Sort(a.blobs)
	a.blobs = slices.Compact(a.blobs)
	return nil
}

// namesStep is how much of the names is read at once.
const namesStep = 64 << 10

// enumerateIn adds the documents that match and whose path lies at least partly in the
// names from lo to hi. It returns where the last of their paths ends, at least hi.
func (a *nameAtom) enumerateIn(lo, hi int64) (int64, error) {
	if err := a.s.tick(); err != nil {
		return 0, err
	}
	docs := a.s.docs
	first, err := docs.DocAt(uint64(lo))
	if err != nil {
		return 0, err
	}
	last, err := docs.DocAt(uint64(hi - 1))
	if err != nil {
		return 0, err
	}
	start, _, err := docs.PathRange(first)
	if err != nil {
		return 0, err
	}
	_, end, err := docs.PathRange(last)
	if err != nil {
		return 0, err
	}
	if a.s.buf, err = docs.AppendNames(a.s.buf[:0], start, uint32(end-start)); err != nil {
		return 0, err
	}
	starts, err := docs.PathStarts()
	if err != nil {
		return 0, err
	}
	text, it, at := a.s.buf, starts.From(int(first)+1), 0
	for doc := first; doc <= last; doc++ {
		to := len(text)
		if next, ok := it.Next(); ok {
			to = int(min(max(next, start)-start, uint64(len(text))))
		}
		if n := len(a.docs); to > at && (n == 0 || a.docs[n-1] < doc) {
			if place, ok := a.place(text[at:to]); ok {
				a.docs, a.places = append(a.docs, doc), append(a.places, place)
			}
		}
		at = max(at, to)
	}
	return max(hi, int64(end)), nil
}

// place says whether a path matches, and how.
func (a *nameAtom) place(path []byte) (p namePlace, ok bool) {
	for start, end := range regex.Ranges(a.matcher, path) {
		p.name = max(p.name, rank.OfName(path, start, end))
		p.ranges++
	}
	if p.ranges > 0 {
		return p, true
	}
	_, _, ok = a.matcher.Find(path, 0) // of nothing, perhaps
	return p, ok
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
		a.ranges = append(a.ranges, span{uint32(start), uint32(end)})
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

// namesAround returns the stretches of the names of the candidate blocks, ascending: the
// rarest n-gram of a match starts in one.
func (s *search) namesAround(lists []places) (stretches []stretch, err error) {
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
				hi := min(total, lo+docstore.BlockSize)
				if n := len(stretches); n > 0 && stretches[n-1].lo <= lo && stretches[n-1].hi >= lo {
					stretches[n-1].hi = max(stretches[n-1].hi, hi)
				} else {
					stretches = append(stretches, stretch{lo, hi})
				}
			}
		}
		if err := cand.Err(); err != nil {
			return nil, err
		}
	}
	if len(lists) < 2 {
		return stretches, nil
	}
	slices.SortFunc(stretches, func(a, b stretch) int { return cmp.Compare(a.lo, b.lo) })
	joined := stretches[:0]
	for _, st := range stretches {
		if n := len(joined); n > 0 && st.lo <= joined[n-1].hi {
			joined[n-1].hi = max(joined[n-1].hi, st.hi)
		} else {
			joined = append(joined, st)
		}
	}
	return joined, nil
}
