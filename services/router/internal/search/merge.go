package search

import "slices"

// merge returns the first items of the lists in the total order, up to limit. If there
// are more, but one was left out, the items end at its place and cut says why.
func (s *resultSet[T]) merge(limit int, lists ...*resultList[T]) (items []T, cut cut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, of := bound[T]{compare: s.compare}, make(map[*resultList[T]]bool, len(lists))
	for _, l := range lists {
		if of[l] = true; l.leftOut != nil {
			end.lower(*l.leftOut, false, cutByMemory)
		}
		if l.ends && l.last != nil {
			end.lower(*l.last, true, cutBySearcher)
		}
	}
	for _, k := range s.kept {
		if of[k.list] && end.admits(k.item) {
			items = append(items, k.item)
		}
	}
	slices.SortFunc(items, s.compare)
	if len(items) >= limit {
		return items[:limit], notCut
	}
	return items, end.cut
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
