package search

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// item has a place in the order and a weight.
type item struct {
	place  int
	weight int64
}

func newSet(most int64) *resultSet[*item] {
	return newResultSet(most, func(a, b *item) int { return cmp.Compare(a.place, b.place) }, func(i *item) int64 { return i.weight })
}

// TestBestIsTheBeginning: whatever the lists receive, in any order, and whatever had to be left
// out, the result is the beginning of all items in order. It has no gap, and is as long as there is
// room for.
func TestBestIsTheBeginning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Int64Range(1, 200).Draw(t, "most")
		set := newSet(most)
		lists := make([]*resultList[*item], rapid.IntRange(1, 5).Draw(t, "lists"))
		dropped := make([]bool, len(lists))
		for i := range lists {
			lists[i] = set.open()
		}
		var all []*item
		total := int64(0)
		ended := math.MaxInt
		for i, l := range lists {
			var brought []*item
			for range rapid.IntRange(0, 12).Draw(t, "items") {
				brought = append(brought, &item{rapid.IntRange(0, 40).Draw(t, "place"), rapid.Int64Range(1, 20).Draw(t, "weight")})
			}
			if rapid.Bool().Draw(t, "in order") {
				slices.SortFunc(brought, func(a, b *item) int { return cmp.Compare(a.place, b.place) })
			}
			for _, it := range brought {
				l.add(it)
			}
			end := math.MaxInt
			if rapid.IntRange(0, 3).Draw(t, "end") == 0 && len(brought) > 0 {
				l.end()
				end = slices.MaxFunc(brought, func(a, b *item) int { return cmp.Compare(a.place, b.place) }).place
			}
			if dropped[i] = rapid.IntRange(0, 5).Draw(t, "drop") == 0; dropped[i] {
				l.drop()
				continue
			}
			ended = min(ended, end)
			all = append(all, brought...)
			for _, it := range brought {
				total += it.weight
			}
		}
		kept := slices.DeleteFunc(slices.Clone(lists), func(l *resultList[*item]) bool { return dropped[slices.Index(lists, l)] })
		limit := rapid.IntRange(1, 80).Draw(t, "limit")
		got, cut := set.merge(limit, kept...)
		slices.SortStableFunc(all, func(a, b *item) int { return cmp.Compare(a.place, b.place) })
		for i, it := range got {
			if it.place > ended {
				t.Fatalf("item %d has place %d, a list has a gap after %d", i, it.place, ended)
			}
			if it.place != all[i].place {
				t.Fatalf("item %d has place %d, want %d", i, it.place, all[i].place)
			}
		}
		var weight int64
		for _, it := range got {
			weight += it.weight
		}
		switch {
		case weight > most && len(got) > 1:
			t.Fatalf("%d items weigh %d, at most %d are held", len(got), weight, most)
		case cut == notCut && len(got) < min(limit, len(all)):
			t.Fatalf("%d of %d items, and nothing is said", len(got), len(all))
		case cut == cutByMemory && total <= most && !slices.Contains(dropped, true):
			t.Fatalf("items of weight %d are left out, %d are allowed", total, most)
		case cut != notCut && len(got) >= limit:
			t.Fatalf("a cut is reported of %d items, as many as wanted", len(got))
		}
	})
}

// TestEndsWhereASenderEnded: what others have beyond the end of a list that was cut by
// its sender is not in the answer.
func TestEndsWhereASenderEnded(t *testing.T) {
	set := newSet(100)
	a, b := set.open(), set.open()
	for place := range 10 {
		b.add(&item{place, 1})
	}
	a.add(&item{3, 1})
	a.add(&item{5, 1})
	a.end()
	got, cut := set.merge(100, a, b)
	if len(got) != 8 || got[7].place != 5 || cut != cutBySearcher {
		t.Errorf("%d items, cut %v", len(got), cut)
	}
	if got, cut = set.merge(100, b); len(got) != 10 || cut != notCut {
		t.Errorf("%d items of the other list, cut %v", len(got), cut)
	}
}

// TestDropGivesBack: what was dropped makes room, and does not shorten answers any more.
func TestDropGivesBack(t *testing.T) {
	set := newSet(10)
	a := set.open()
	for place := range 10 {
		a.add(&item{place, 1})
	}
	a.drop()
	b := set.open()
	for place := range 10 {
		b.add(&item{100 + place, 1})
	}
	if got, cut := set.merge(100, b); len(got) != 10 || cut != notCut {
		t.Errorf("%d items, cut %v", len(got), cut)
	}
}

// TestExtend: an item grows while it is held, and no further than there is room.
func TestExtend(t *testing.T) {
	set := newSet(10)
	a, b := set.open(), set.open()
	a.add(&item{1, 1})
	b.add(&item{2, 1})
	grown := 0
	grow := func(_ *item, room bool) {
		if room {
			grown++
		}
	}
	b.extend(5, grow)
	a.extend(5, grow) // pushes the other one out
	b.extend(1, grow) // it is gone
	if grown != 2 {
		t.Errorf("grown %d times", grown)
	}
	a.extend(5, func(_ *item, room bool) {
		if room {
			t.Error("there is no room for more of one item alone")
		}
	})
	got, cut := set.merge(10, a, b)
	if len(got) != 1 || got[0].place != 1 || cut != cutByMemory {
		t.Errorf("%d items, cut %v", len(got), cut)
	}
}

// TestManyAtOnce: lists are filled at the same time, for the race detector.
func TestManyAtOnce(t *testing.T) {
	set := newSet(500)
	lists := make([]*resultList[*item], 8)
	var filling sync.WaitGroup
	for i := range lists {
		lists[i] = set.open()
		filling.Go(func() {
			for place := range 200 {
				lists[i].add(&item{place*len(lists) + i, 1})
				lists[i].extend(1, func(it *item, room bool) { it.weight++ })
			}
			if i%3 == 0 {
				lists[i].drop()
			}
		})
	}
	filling.Wait()
	got, _ := set.merge(1000, lists[1], lists[2], lists[4])
	for i := 1; i < len(got); i++ {
		if got[i-1].place >= got[i].place {
			t.Fatalf("items %d and %d are not in order", i-1, i)
		}
	}
}
