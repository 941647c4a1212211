package search

import (
	"slices"
	"sync"

	"github.com/trawl-search/trawl/index/heap"
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
	// kept are the items of all lists. If full is set, they are a heap, the last of all first.
	kept []*keptItem[T]
	full bool
}

// keptItem is an item that the set holds.
type keptItem[T any] struct {
	item T
	size int64
	list *resultList[T]
	// gone is set when the set leaves it out.
	gone bool
}

// newResultSet returns a set that holds up to most bytes, as weigh measures items, or one
// larger item.
func newResultSet[T any](most int64, compare func(a, b T) int, weigh func(T) int64) *resultSet[T] {
	return &resultSet[T]{most: most, compare: compare, weigh: weigh}
}

// resultList holds the results of one call. One goroutine fills it.
type resultList[T any] struct {
	set *resultSet[T]
	// latest is the last added item. It is nil if the set left that item out at once.
	latest *keptItem[T]
	// leftOut is the first item that the set left out.
	leftOut *T
	// last is the last item in order that the searcher sent. Ends is set if the searcher
	// left out what follows it.
	last *T
	ends bool
}

// open starts the list of a call.
func (s *resultSet[T]) open() *resultList[T] { return &resultList[T]{set: s} }

// add adds an item. Items may come in any order.
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
	l.latest = &keptItem[T]{item: item, size: s.weigh(item), list: l}
	s.held += l.latest.size
	if s.full {
		s.kept = heap.Push(s.kept, l.latest, s.lastFirst)
	} else {
		s.kept = append(s.kept, l.latest)
	}
	s.shed()
}

// extend passes the last added item to grow, unless the set left it out. Grow adds more
// bytes to it if room is true. Room is false if nothing else is held and there is still
// no space; grow must not add to the item then.
func (l *resultList[T]) extend(more int64, grow func(item T, room bool)) {
	s := l.set
	s.mu.Lock()
	defer s.mu.Unlock()
	k := l.latest
	if k == nil || k.gone {
		return
	}
	if s.held+more > s.most && len(s.kept) == 1 {
		grow(k.item, false)
		return
	}
	grow(k.item, true)
	k.size += more
	s.held += more
	s.shed()
}

// beyond reports whether the item comes after an item that was left out.
func (l *resultList[T]) beyond(item T) bool {
	return l.leftOut != nil && l.set.compare(item, *l.leftOut) >= 0
}

// end records that the searcher left out what follows its last item.
func (l *resultList[T]) end() { l.ends = true }

// shed drops the last items in order until the set fits, or has a single one.
func (s *resultSet[T]) shed() {
	for s.held > s.most && len(s.kept) > 1 {
		if !s.full {
			heap.Init(s.kept, s.lastFirst)
			s.full = true
		}
		k := s.kept[0]
		s.kept = heap.Pop(s.kept, s.lastFirst)
		s.held -= k.size
		if k.gone = true; !k.list.beyond(k.item) {
			k.list.leftOut = &k.item
		}
	}
}

func (s *resultSet[T]) lastFirst(a, b **keptItem[T]) int { return s.compare((*b).item, (*a).item) }

// drop empties the list and frees its memory.
func (l *resultList[T]) drop() {
	s := l.set
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(k *keptItem[T]) bool {
		if k.list == l {
			s.held -= k.size
		}
		return k.list == l
	})
	s.full, l.latest = false, nil // what is left need not be a heap
}
