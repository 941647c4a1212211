package search

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// heldSet is a plain resultSet: all that it holds, of items with places of their own.
type heldSet struct {
	most int64
	held map[int]heldItem // by place
	// leftOut and latest are places, by list.
	leftOut, latest map[int]int
}

type heldItem struct {
	list   int
	weight int64
}

// nowhere is no place.
const nowhere = math.MaxInt

func newHeldSet(most int64, lists int) *heldSet {
	m := &heldSet{most: most, held: map[int]heldItem{}, leftOut: map[int]int{}, latest: map[int]int{}}
	for l := range lists {
		m.leftOut[l], m.latest[l] = nowhere, nowhere
	}
	return m
}

func (m *heldSet) sum() (sum int64) {
	for _, it := range m.held {
		sum += it.weight
	}
	return sum
}

func (m *heldSet) shed() {
	for m.sum() > m.most && len(m.held) > 1 {
		last := slices.Max(slices.Collect(maps.Keys(m.held)))
		list := m.held[last].list
		m.leftOut[list] = min(m.leftOut[list], last)
		delete(m.held, last)
	}
}

func (m *heldSet) add(list, place int, weight int64) {
	if m.latest[list] = nowhere; place < m.leftOut[list] {
		m.latest[list], m.held[place] = place, heldItem{list, weight}
		m.shed()
	}
}

// extend returns the place of the item that may grow, or nowhere, and whether it does.
func (m *heldSet) extend(list int, more int64) (place int, room bool) {
	place = m.latest[list]
	it, held := m.held[place]
	if !held {
		return nowhere, false
	}
	if m.sum()+more > m.most && len(m.held) == 1 {
		return place, false
	}
	m.held[place] = heldItem{list, it.weight + more}
	m.shed()
	return place, true
}

// merge returns the places of the lists' items before the first that one of them left out.
func (m *heldSet) merge(lists []int) (places []int, cut cut) {
	end := nowhere
	for _, l := range lists {
		end = min(end, m.leftOut[l])
	}
	for place, it := range m.held {
		if slices.Contains(lists, it.list) && place < end {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	if end < nowhere {
		cut = cutByMemory
	}
	return places, cut
}

// TestSetHoldsWhatItShould: after any order of items that are added, that grow and that are dropped, a
// set weighs and answers what a plain one does. Only an item that is still held grows, and the weight
// by which it grew is given back with it.
func TestSetHoldsWhatItShould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Int64Range(1, 40).Draw(t, "most")
		lists := []int{0, 1, 2}
		set, plain := newSet(most), newHeldSet(most, len(lists))
		var built []*resultList[*item]
		for range lists {
			built = append(built, set.open())
		}
		n := 0
		list := rapid.IntRange(0, len(lists)-1)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				l, weight := list.Draw(t, "list"), rapid.Int64Range(1, 9).Draw(t, "weight")
				n++ // no place comes twice
				place := 1000*rapid.IntRange(-9, 9).Draw(t, "place") + n
				built[l].add(&item{place, weight})
				plain.add(l, place, weight)
			},
			"extend": func(t *rapid.T) {
				l, more := list.Draw(t, "list"), rapid.Int64Range(1, 9).Draw(t, "more")
				want, wantRoom := plain.extend(l, more)
				got, gotRoom := nowhere, false
				built[l].extend(more, func(it *item, room bool) { got, gotRoom = it.place, room })
				if got != want || gotRoom != wantRoom {
					t.Fatalf("the item at %d grows: %v, want that at %d: %v", got, gotRoom, want, wantRoom)
				}
			},
			"drop": func(t *rapid.T) {
				l := list.Draw(t, "list")
				built[l].drop()
				maps.DeleteFunc(plain.held, func(_ int, it heldItem) bool { return it.list == l })
				built[l], plain.leftOut[l], plain.latest[l] = set.open(), nowhere, nowhere
			},
			"": func(t *rapid.T) {
				if set.held != plain.sum() {
					t.Fatalf("the set holds %d bytes, want %d", set.held, plain.sum())
				}
				some := lists[:rapid.IntRange(1, len(lists)).Draw(t, "merged")]
				want, wantCut := plain.merge(some)
				items, cut := set.merge(math.MaxInt, built[:len(some)]...)
				if !slices.EqualFunc(items, want, func(it *item, place int) bool { return it.place == place }) || cut != wantCut {
					t.Fatalf("%d items, cut %v, want those at %v, cut %v", len(items), cut, want, wantCut)
				}
			},
		})
	})
}
