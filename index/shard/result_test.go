package shard

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMergeIsASortOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lists [][]FileMatch
		var all []FileMatch
		for range rapid.IntRange(0, 4).Draw(t, "lists") {
			var list []FileMatch
			for range rapid.IntRange(0, 6).Draw(t, "files") {
				list = append(list, FileMatch{
					Score: float64(rapid.IntRange(0, 2).Draw(t, "score")),
					Repo:  rapid.SampledFrom([]string{"a", "b"}).Draw(t, "repo"),
					Path:  []byte(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "path")),
					Blob:  []byte{rapid.Byte().Draw(t, "blob")},
				})
			}
			slices.SortFunc(list, func(a, b FileMatch) int { return Compare(a.Key(), b.Key()) })
			lists, all = append(lists, list), append(all, list...)
		}
		slices.SortStableFunc(all, func(a, b FileMatch) int { return Compare(a.Key(), b.Key()) })
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		want := all[:min(limit, len(all))]
		if got := Merge(limit, lists...); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("Merge = %v, want %v", got, want)
		}
	})
}

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
