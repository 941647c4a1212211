// Package gather holds what searchers send for one query, within a bound of memory.
//
// Everything that is found has a place in one total order, and an answer is the
// beginning of that order. So when a Set holds too much, what comes last of all goes
// first, whoever sent it: what is left is still the beginning of what there is.
// Where something was left out of a List, by the Set or by its sender, nothing that
// comes later may be in an answer, since it would have a gap before it. Best keeps to
// that.
package gather

import (
	"container/heap"
	"sync"
)

// Cut is why an answer ends before everything that was found.
type Cut uint8

const (
	// Whole is that it does not.
	Whole Cut = iota
	// Sent is that a sender left out what follows.
	Sent
	// Memory is that the Set had no room for what follows.
	Memory
)

// Set is all that is held for one query. It is safe for concurrent use.
type Set[T any] struct {
	most    int64
	compare func(a, b T) int
	weigh   func(T) int64

	mu   sync.Mutex
	held int64
	// tails has the runs that are not empty, that with the last item of all first.
	tails tails[T]
}

// New makes a set that holds up to most bytes, as weigh measures items, or one item
// that has more.
func New[T any](most int64, compare func(a, b T) int, weigh func(T) int64) *Set[T] {
	s := &Set[T]{most: most, compare: compare, weigh: weigh}
	s.tails.compare = compare
	return s
}

// List is what one call brings. It is filled by one goroutine.
type List[T any] struct {
	set  *Set[T]
	runs []*run[T]
	// latest is the run that the item added latest was put into, as the last of
	// length items; nil if it was left out at once.
	latest *run[T]
	length int
	// leftOut is the first item that the set left out.
	leftOut *T
	// last is the last of all items that were sent. Ends is set when the sender has
	// left out what follows it.
	last *T
	ends bool
}

// run is items in order.
type run[T any] struct {
	items []T
	// sizes are the items' weights.
	sizes []int64
	list  *List[T]
	// place in the heap, or -1.
	place int
}

// Open begins the list of a call.
func (s *Set[T]) Open() *List[T] { return &List[T]{set: s} }

// Add takes an item. Items mostly come in order; one that does not begins a new run.
func (l *List[T]) Add(item T) {
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

// runFor is the run that the item goes to the end of.
func (l *List[T]) runFor(item T) *run[T] {
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

// Extend gives the item added latest to grow, unless it was left out; growing makes
// it as much heavier as more says. When nothing else is held and there is still no
// room for that, grow gets it with room false, and must leave it as heavy as it is.
func (l *List[T]) Extend(more int64, grow func(item T, room bool)) {
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

// beyond reports whether the place of the item comes after something that was left out.
func (l *List[T]) beyond(item T) bool {
	return l.leftOut != nil && l.set.compare(item, *l.leftOut) >= 0
}

// End says that the sender has left out what comes after all it sent.
func (l *List[T]) End() { l.ends = true }

// shed leaves out the last items of all until there is room.
func (s *Set[T]) shed() {
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
func (s *Set[T]) alone() bool {
	runs := s.tails.runs
	return len(runs) == 0 || len(runs) == 1 && len(runs[0].items) == 1
}

// Drop gives back what the list holds. It is empty after.
func (l *List[T]) Drop() {
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
