package search

import (
	"bytes"
	"cmp"
	"sort"
)

// nameWalk visits the paths that may match. Paths are sorted. If the rest of a path cannot undo a
// match, every path with the same prefix matches too. So in a folder that matches, the walk looks
// at few paths, however many there are.
type nameWalk struct {
	*nameAtom
	stretches []stretch // to be visited
	at, step  int64     // the next offset, and how much to read
	looks     uint64    // at paths so far
	found     nameHits
	// prefix is the start of the path looked at last: every path that begins with it matches. It is
	// nil if there is none.
	prefix []byte
}

const (
	// leastNames and mostNames bound how much of the names is read at once. Reads start small,
	// because few paths may be enough, and grow.
	leastNames = 4 << 10
	mostNames  = 64 << 10
)

// begin finds the stretches of names to visit.
func (w *nameWalk) begin() (err error) {
	w.step, w.stretches = leastNames, []stretch{{0, int64(w.s.docs.NamesLen())}}
	if w.candidates.narrow {
		w.stretches, err = w.s.namesAround(w.candidates.lists)
	}
	return err
}

// walk continues until it has visited everything, or has looked at more paths than budget since the
// walk began.
func (w *nameWalk) walk(budget uint64) (done bool, err error) {
	for len(w.stretches) > 0 {
		if w.at = max(w.at, w.stretches[0].lo); w.at >= w.stretches[0].hi {
			w.stretches = w.stretches[1:]
			continue
		}
		if w.looks > budget {
			return false, nil
		}
		hi := min(w.stretches[0].hi, w.at+w.step)
		if w.at, err = w.visit(w.at, hi); err != nil {
			return false, err
		}
		if w.step = min(w.step*2, mostNames); w.at > hi+mostNames {
			w.step = leastNames
		}
	}
	return true, nil
}

// visit adds the matching documents whose path lies at least partly in the names from lo to hi. It
// returns the offset to continue from, at least hi.
func (w *nameWalk) visit(lo, hi int64) (int64, error) {
	if err := w.s.tick(); err != nil {
		return 0, err
	}
	docs := w.s.docs
	first, err := docs.DocAt(uint64(lo))
	if err != nil {
		return 0, err
	}
	last, err := docs.DocAt(uint64(hi - 1))
	if err != nil {
		return 0, err
	}
	if w.within != nil {
		switch i := w.within.seek(first); {
		case i == len(w.within):
			return int64(docs.NamesLen()), nil
		case w.within[i].From > last:
			start, _, err := docs.PathRange(w.within[i].From)
			return max(hi, int64(start)), err
		}
	}
	start, _, err := docs.PathRange(first)
	if err != nil {
		return 0, err
	}
	_, end, err := docs.PathRange(last)
	if err != nil {
		return 0, err
	}
	if w.s.buf, err = docs.AppendNames(w.s.buf[:0], start, uint32(end-start)); err != nil {
		return 0, err
	}
	if err := w.look(first, last, start); err != nil || w.prefix == nil {
		return max(hi, int64(end)), err
	}
	next, looks, err := w.s.prefixEnd(last, w.prefix)
	if err != nil {
		return 0, err
	}
	w.looks += looks * seekLooks
	w.found.docs = w.found.docs.add(last, next)
	if next == docs.Len() {
		return int64(docs.NamesLen()), nil
	}
	start, _, err = docs.PathRange(next)
	return max(hi, int64(start)), err
}

// look decides the documents from first to last, whose paths are in s.buf.
func (w *nameWalk) look(first, last uint32, start uint64) error {
	starts, err := w.s.docs.PathStarts()
	if err != nil {
		return err
	}
	w.looks += uint64(last - first + 1)
	w.prefix = nil
	text, it, at := w.s.buf, starts.From(int(first)+1), 0
	for doc := first; doc <= last; doc++ {
		to := len(text)
		if next, ok := it.Next(); ok {
			to = int(min(max(next, start)-start, uint64(len(text))))
		}
		if to > at && doc >= w.found.docs.end() {
			w.decide(doc, text[at:to])
		}
		at = max(at, to)
	}
	return nil
}

// decide adds a document if its path matches.
func (w *nameWalk) decide(doc uint32, path []byte) {
	if w.prefix != nil && bytes.HasPrefix(path, w.prefix) {
		w.found.docs = w.found.docs.add(doc, doc+1)
		return
	}
	w.prefix = nil
	if w.placed {
		if place, ok := w.place(path); ok {
			w.found.docs, w.found.places = w.found.docs.add(doc, doc+1), append(w.found.places, place)
		}
		return
	}
	_, end, ok := w.matcher.Find(path, 0)
	if !ok {
		return
	}
	w.found.docs = w.found.docs.add(doc, doc+1)
	if w.followed {
		// An expression may look at what follows, but not beyond a slash.
		slash := bytes.IndexByte(path[end:], '/')
		if slash < 0 {
			return
		}
		end += slash + 1
	}
	w.prefix = path[:end]
}

// prefixEnd returns the first document after doc whose path does not begin with the prefix, or that
// belongs to another repo, and the number of paths looked at. It uses a galloping search.
func (s *search) prefixEnd(doc uint32, prefix []byte) (end uint32, looks uint64, err error) {
	repo, err := s.docs.RepoOf(doc)
	if err != nil {
		return 0, 0, err
	}
	first, n, err := s.docs.RepoDocs(repo)
	if err != nil {
		return 0, 0, err
	}
	limit := max(first+n, doc+1)
	has := func(doc uint32) bool {
		looks++
		var failed error
		s.edge, failed = s.docs.AppendPath(s.edge[:0], doc)
		err = cmp.Or(err, failed)
		return failed == nil && bytes.HasPrefix(s.edge, prefix)
	}
	step := uint32(1)
	for doc+step < limit && has(doc+step) {
		doc += step
		step *= 2
	}
	rest := min(step, limit-doc)
	end = doc + 1 + uint32(sort.Search(int(rest)-1, func(i int) bool { return !has(doc + 1 + uint32(i)) }))
	return end, looks, err
}
