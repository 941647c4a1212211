package heap

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestFirst: the first elements of a heap are those that would be dropped first, and the heap stays.
func TestFirst(t *testing.T) {
	compare := func(a, b *int) int { return cmp.Compare(*a, *b) }
	rapid.Check(t, func(t *rapid.T) {
		var heap []int
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 20), 0, 60).Draw(t, "numbers") {
			heap = Push(heap, n, compare)
		}
		before, n := slices.Clone(heap), rapid.IntRange(0, 70).Draw(t, "n")
		got := First(heap, n, compare)
		if !slices.Equal(heap, before) {
			t.Fatalf("the heap %v has become %v", before, heap)
		}
		var want []int
		for rest := before; len(rest) > 0 && len(want) < n; rest = Pop(rest, compare) {
			want = append(want, rest[0])
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the first %d of %v are %v, not %v", n, heap, got, want)
		}
	})
}
