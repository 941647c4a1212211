package search

import (
	"container/heap"
	"sync"
)

// cut is why an answer ends before the end of the results.
type cut uint8

const (
	// notCut: it has all results.
	notCut cut = iota
	// cutBySearcher: a searcher left out what follows.
	cutBySearcher
	// cutByMemory: the resultSet had no room for what follows.
	cutByMemory
)

// resultSet holds the results of one query within a memory limit. It is safe for
// concurrent use.
//
// Results have one total order, and an answer is a prefix of that order. When the
// set exceeds its limit it drops the last results first, so the rest is still a
// prefix. When the set or a searcher left something out of a list, merge ends
// there: an answer has no gaps.
type resultSet[T any] struct {
	most    int64
	compare func(a, b T) int
	weigh   func(T) int64

	mu   sync.Mutex
	held int64
	// tails are the non-empty runs, the one with the last item of all first.
	tails tails[T]
}

// newResultSet returns a set that holds up to most bytes, as weigh measures items, or one
// larger item.
func newResultSet[T any](most int64, compare func(a, b T) int, weigh func(T) int64) *resultSet[T] {
	s := &resultSet[T]{most: most, compare: compare, weigh: weigh}
	s.tails.compare = compare
	return s
}

// resultList holds the results of one call. One goroutine fills it.
type resultList[T any] struct {
	set  *resultSet[T]
	runs []*run[T]
	// latest is the run of the last added item, which made it length items long. It is
	// nil if the set left that item out at once.
	latest *run[T]
	length int
	// leftOut is the first item that the set left out.
	leftOut *T
	// last is the last item in order that the searcher sent. Ends is set if the searcher
	// left out what follows it.
	last *T
	ends bool
}

// run is items in order.
type run[T any] struct {
	items []T
	// sizes are the items' weights.
	sizes []int64
	list  *resultList[T]
	// place in the heap, or -1.
	place int
}

// open starts the list of a call.
func (s *resultSet[T]) open() *resultList[T] { return &resultList[T]{set: s} }

// add adds an item. Items mostly come in order; one out of order starts a new run.
func (l *resultList[T]) add(item T) {
	s := l.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.last == nil || s.compare(*l.last, item) < 0 {
		l.last = &item
	}
	l.latest = nil
	if l.beyond(item) {
		return
	}
	r := l.runFor(item)
	size := s.weigh(item)
	r.items, r.sizes = append(r.items, item), append(r.sizes, size)
	l.latest, l.length = r, len(r.items)
	s.held += size
	if r.place < 0 {
		heap.Push(&s.tails, r)
	} else {
		heap.Fix(&s.tails, r.place)
	}
	s.shed()
}

// runFor is the run to which the item is appended.
func (l *resultList[T]) runFor(item T) *run[T] {
	if n := len(l.runs); n > 0 {
		r := l.runs[n-1]
		if end := len(r.items) - 1; end < 0 || l.set.compare(r.items[end], item) <= 0 {
			return r
		}
	}
	r := &run[T]{list: l, place: -1}
	l.runs = append(l.runs, r)
	return r
}

// extend passes the last added item to grow, unless the set left it out. Grow adds more
// bytes to it if room is true. Room is false if nothing else is held and there is still
// no space; grow must not add to the item then.
func (l *resultList[T]) extend(more int64, grow func(item T, room bool)) {
	s := l.set
	s.mu.Lock()
	defer s.mu.Unlock()
	r := l.latest
	if r == nil || len(r.items) < l.length {
		return
	}
	item := r.items[l.length-1]
	if s.held+more > s.most && s.alone() {
		grow(item, false)
		return
	}
	grow(item, true)
	r.sizes[l.length-1] += more
	s.held += more
	s.shed()
}

// beyond reports whether the item comes after an item that was left out.
func (l *resultList[T]) beyond(item T) bool {
	return l.leftOut != nil && l.set.compare(item, *l.leftOut) >= 0
}

// end records that the searcher left out what follows its last item.
func (l *resultList[T]) end() { l.ends = true }

// shed drops the last items in order until the set fits.
func (s *resultSet[T]) shed() {
	for s.held > s.most && !s.alone() {
		r := s.tails.runs[0]
		end := len(r.items) - 1
		item := r.items[end]
		s.held -= r.sizes[end]
		var none T
		r.items[end] = none
		r.items, r.sizes = r.items[:end], r.sizes[:end]
		if end == 0 {
			heap.Pop(&s.tails)
		} else {
			heap.Fix(&s.tails, 0)
		}
		if l := r.list; !l.beyond(item) {
			l.leftOut = &item
		}
	}
}

// alone reports whether one item is held, or none.
func (s *resultSet[T]) alone() bool {
	runs := s.tails.runs
	return len(runs) == 0 || len(runs) == 1 && len(runs[0].items) == 1
}

// drop empties the list and frees its memory.
func (l *resultList[T]) drop() {
	s := l.set
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range l.runs {
		for _, size := range r.sizes {
			s.held -= size
		}
		if r.place >= 0 {
			heap.Remove(&s.tails, r.place)
		}
	}
	l.runs, l.latest = nil, nil
}

// tails is a heap of runs by their last items, the last of all first.
type tails[T any] struct {
	runs    []*run[T]
	compare func(a, b T) int
}

func (t *tails[T]) Len() int { return len(t.runs) }

func (t *tails[T]) Less(i, j int) bool {
	a, b := t.runs[i], t.runs[j]
	return t.compare(a.items[len(a.items)-1], b.items[len(b.items)-1]) > 0
}

func (t *tails[T]) Swap(i, j int) {
	t.runs[i], t.runs[j] = t.runs[j], t.runs[i]
	t.runs[i].place, t.runs[j].place = i, j
}

func (t *tails[T]) Push(x any) {
	if r, ok := x.(*run[T]); ok {
		r.place = len(t.runs)
		t.runs = append(t.runs, r)
	}
}

func (t *tails[T]) Pop() any {
	last := t.runs[len(t.runs)-1]
	t.runs, last.place = t.runs[:len(t.runs)-1], -1
	return last
}
