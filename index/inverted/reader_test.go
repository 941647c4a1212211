package inverted

import (
	"slices"
	"testing"
)

// TestReader reads random lists with a Reader, in ascending order with gaps and
// then from the first one again.
func TestReader(t *testing.T) {
	random := newRandom(t)
	lists := randomWords(random, 2000, 700)
	x, err := openWords(t, writeWords(t, lists, 700))
	if err != nil {
		t.Fatal(err)
	}
	var r Reader
	if err := r.reset(x); err != nil {
		t.Fatal(err)
	}
	for word := 0; word < 3*len(lists); word += 1 + random.IntN(1+random.IntN(800)) {
		want := lists[word%len(lists)]
		df, err := r.Open(uint32(word % len(lists)))
		if err != nil || int(df) != len(want.superblocks) {
			t.Fatalf("word %d has %d postings, not %d: %v", word%len(lists), df, len(want.superblocks), err)
		}
		superblocks, counts := wholeList(&r)
		if r.Err() != nil || !slices.Equal(superblocks, want.superblocks) || !slices.Equal(counts, want.counts) {
			t.Fatalf("word %d: %v %v, not %v %v: %v", word%len(lists), superblocks, counts, want.superblocks, want.counts, r.Err())
		}
	}
	if _, err := r.Open(x.Terms()); err == nil {
		t.Error("a word that is not there opens")
	}
}

func wholeList(r *Reader) (superblocks []uint32, counts []uint16) {
	for s, c := r.Block(); len(s) > 0; s, c = r.Block() {
		superblocks, counts = append(superblocks, s...), append(counts, c...)
	}
	return superblocks, counts
}

// BenchmarkReadWords reads the lists of words. Most of these have few postings.
func BenchmarkReadWords(b *testing.B) {
	const words, superblocks = 1 << 14, 1 << 16
	lists := make([]run, words)
	for i := range lists {
		step := uint32(superblocks/(1+words/(i+1)) + 1)
		for s := uint32(i) % step; s < superblocks; s += step {
			lists[i].superblocks = append(lists[i].superblocks, s)
			lists[i].masks = append(lists[i].masks, 1)
			lists[i].counts = append(lists[i].counts, uint16(1+i%3))
			lists[i].defined = append(lists[i].defined, false)
		}
	}
	x, err := openWords(b, writeWords(b, lists, superblocks))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("reader", func(b *testing.B) {
		var r Reader
		if err := r.reset(x); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			for word := range uint32(words) {
				if _, err := r.Open(word); err != nil {
					b.Fatal(err)
				}
				for s, _ := r.Block(); len(s) > 0; s, _ = r.Block() {
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/words, "ns/word")
	})
	b.Run("iterator", func(b *testing.B) {
		var it Iterator
		for b.Loop() {
			for word := range uint32(words) {
				list, err := x.list(word)
				if err != nil {
					b.Fatal(err)
				}
				it.Reset(list)
				for s, _ := it.Block(); len(s) > 0; s, _ = it.Block() {
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/words, "ns/word")
	})
}
