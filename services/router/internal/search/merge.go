package search

import "container/heap"

// merge returns the first items of the lists in the total order, up to limit. If there
// are more, but one was left out, the items end at its place and cut says why.
func (s *resultSet[T]) merge(limit int, lists ...*resultList[T]) (items []T, cut cut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := bound[T]{compare: s.compare}
	heads := heads[T]{compare: s.compare}
	for _, l := range lists {
		if l.leftOut != nil {
			end.lower(*l.leftOut, false, cutByMemory)
		}
		if l.ends && l.last != nil {
			end.lower(*l.last, true, cutBySearcher)
		}
		for _, r := range l.runs {
			if len(r.items) > 0 {
				heads.lists = append(heads.lists, r.items)
			}
		}
	}
	heap.Init(&heads)
	for len(heads.lists) > 0 && len(items) < limit {
		first := heads.lists[0][0]
		if !end.admits(first) {
			break
		}
		items = append(items, first)
		if heads.lists[0] = heads.lists[0][1:]; len(heads.lists[0]) == 0 {
			heap.Pop(&heads)
		} else {
			heap.Fix(&heads, 0)
		}
	}
	if len(items) < limit {
		cut = end.cut
	}
	return items, cut
}

// bound is the place at which an answer must end.
type bound[T any] struct {
	compare func(a, b T) int
	at      T
	// inclusive is true if the item at that place is in the answer.
	inclusive bool
	// cut is the reason; notCut means that there is no bound.
	cut cut
}

func (b *bound[T]) lower(at T, inclusive bool, cut cut) {
	if b.cut != notCut {
		if c := b.compare(at, b.at); c > 0 || c == 0 && (inclusive || !b.inclusive) {
			return
		}
	}
	b.at, b.inclusive, b.cut = at, inclusive, cut
}

func (b *bound[T]) admits(item T) bool {
	if b.cut == notCut {
		return true
	}
	c := b.compare(item, b.at)
	return c < 0 || c == 0 && b.inclusive
}

// heads is a heap of non-empty lists by their first items.
type heads[T any] struct {
	lists   [][]T
	compare func(a, b T) int
}

func (h *heads[T]) Len() int           { return len(h.lists) }
func (h *heads[T]) Less(i, j int) bool { return h.compare(h.lists[i][0], h.lists[j][0]) < 0 }
func (h *heads[T]) Swap(i, j int)      { h.lists[i], h.lists[j] = h.lists[j], h.lists[i] }
func (h *heads[T]) Push(any)           {} // lists are never added

func (h *heads[T]) Pop() any {
	last := h.lists[len(h.lists)-1]
	h.lists = h.lists[:len(h.lists)-1]
	return last
}
