package inverted

import (
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/ngram"
)

type posting struct {
	superblock uint32
	mask       uint8
}

// Groups of few and of many chunks, over several eras and with reused memory, return
// what was added.
func TestGroupsAcrossErasAndSlabs(t *testing.T) {
	random := newRandom(t)
	var g ngramPool
	var s sortedGroup
	for range 3 {
		g.reset()
		want := map[ngram.ID][]posting{}
		next := uint32(0)
		for range 2000 {
			next += 1 + random.Uint32N(2)*random.Uint32N(90)
			var ids []ngram.ID
			for range 1 + random.IntN(300) {
				ids = append(ids, ngram.ID(random.Float64()*random.Float64()*random.Float64()*ngram.Space))
			}
			slices.Sort(ids)
			ids = slices.Compact(ids)
			random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			masks := make([]uint8, len(ids))
			for i, id := range ids {
				masks[i] = uint8(1 + random.IntN(255))
				want[id] = append(want[id], posting{next, masks[i]})
			}
			g.add(next, ids, masks)
		}
		if len(g.eras) < 3 || len(g.slabs) < 2 {
			t.Fatalf("only %d eras and %d slabs", len(g.eras), len(g.slabs))
		}
		checkGroups(t, &g, &s, want)
	}
}

func checkGroups(t *testing.T, g *ngramPool, s *sortedGroup, want map[ngram.ID][]posting) {
	t.Helper()
	found := 0
	for number := range g.groups {
		s.sort(g, number)
		start := uint32(0)
		for i, end := range s.ends {
			id := ngram.ID(number*groupSize + i)
			var got []posting
			for j := start; j < end; j++ {
				got = append(got, posting{s.superblocks[j], s.masks[j]})
			}
			if !slices.Equal(got, want[id]) {
				t.Fatalf("n-gram %d has %d postings, want %d, or others", id, len(got), len(want[id]))
			}
			if end > start {
				found++
			}
			start = end
		}
	}
	if found != len(want) {
		t.Errorf("%d n-grams, want %d", found, len(want))
	}
}

// Entries come back by term, in the order in which they were added: with terms without entries, at the ends of groups and chunks, and with
// reused memory.
func TestSortedPool(t *testing.T) {
	random := newRandom(t)
	var p sortedPool
	for _, terms := range []int{1, groupSize - 1, groupSize, groupSize + 1, 3 * groupSize} {
		p.reset()
		p.grow((terms + groupSize - 1) / groupSize)
		want := make([][]uint64, terms)
		for i := range uint64(3*chunkEntries*(terms/groupSize+1) + 1) {
			term := uint32(terms - 1)
			if i%3 > 0 {
				term = random.Uint32N(uint32(terms))
			}
			if term%7 == 3 {
				continue
			}
			p.add(term, i)
			want[term] = append(want[term], i)
		}
		p.sort(terms)
		for term := range want {
			g, start, end := p.run(uint32(term))
			var got []uint64
			for part := range g.parts(start, end) {
				for _, entry := range part {
					got = append(got, entry%(1<<numberAt))
				}
			}
			if !slices.Equal(got, want[term]) {
				t.Fatalf("term %d of %d has the entries %v, want %v", term, terms, got, want[term])
			}
		}
	}
}
