package search

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestBestKeepsTheFirstInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []hit
		b := best{limit: rapid.IntRange(1, 5).Draw(t, "limit")}
		for doc := range rapid.Uint32Range(0, 40).Draw(t, "docs") {
			h := hit{doc: doc, score: float64(rapid.IntRange(0, 5).Draw(t, "score"))}
			all = append(all, h)
			if b.admits(h.score, h.doc) {
				b.add(h)
			}
		}
		slices.SortFunc(all, compareHits)
		want := all[:min(b.limit, len(all))]
		if got := b.sorted(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("best %d of %v = %v, want %v", b.limit, all, got, want)
		}
	})
}
