package catalog

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestChunksAreTheRoots: after any changes, the chunks hold exactly the roots that were put and not removed,
// in order, and a change leaves all earlier lists as they were.
func TestChunksAreTheRoots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := make(map[string]int64)
		var roots []Root
		for i := range rapid.IntRange(0, 1000).Draw(t, "at first") {
			root := Root{Record: &catalogv1.Root{Repo: fmt.Sprintf("repo%04d", 2*i)}, Revision: 1}
			roots, want[root.Record.Repo] = append(roots, root), 1
		}
		chunks := chunksOf(roots)
		for round := range rapid.IntRange(1, 30).Draw(t, "rounds") {
			before, held := slices.Clone(chunks), all(chunks)
			next := slices.Clone(chunks)
			first := rapid.IntRange(0, 2000).Draw(t, "first")
			number := rapid.IntRange(1, 400).Draw(t, "number")
			deletes := rapid.Bool().Draw(t, "deletes")
			for i := first; i < first+number; i++ {
				name := fmt.Sprintf("repo%04d", i)
				if deletes {
					next = remove(next, name)
					delete(want, name)
					continue
				}
				next = put(next, Root{Record: &catalogv1.Root{Repo: name}, Revision: int64(round + 2)})
				want[name] = int64(round + 2)
			}
			if got := all(before); !maps.Equal(got, held) {
				t.Fatal("a change shows in an earlier snapshot")
			}
			chunks = next
			check(t, chunks, want)
		}
	})
}

func all(chunks []*Chunk) map[string]int64 {
	held := make(map[string]int64)
	for _, c := range chunks {
		for _, r := range c.Roots {
			held[r.Record.Repo] = r.Revision
		}
	}
	return held
}

func check(t *rapid.T, chunks []*Chunk, want map[string]int64) {
	s := newSnapshot(1, chunks)
	if got := all(chunks); !maps.Equal(got, want) || len(s.Roots()) != len(want) || !slices.IsSortedFunc(s.Roots(), func(a, b Root) int { return compareRepo(a, b.Record.Repo) }) {
		t.Fatalf("%d roots, want %d", len(s.Roots()), len(want))
	}
	for _, c := range chunks {
		if len(c.Roots) == 0 || len(c.Roots) > mostInChunk {
			t.Fatalf("a chunk of %d roots", len(c.Roots))
		}
	}
	for i := range 10 {
		name := fmt.Sprintf("repo%04d", rapid.IntRange(0, 2400).Draw(t, fmt.Sprint("name", i)))
		if root, ok := s.Root(name); ok != (want[name] != 0) || root.Revision != want[name] {
			t.Fatalf("%s: %v, %v", name, root, ok)
		}
	}
}

// BenchmarkChange measures one change of a root in a snapshot of very many.
func BenchmarkChange(b *testing.B) {
	roots := make([]Root, 1_000_000)
	for i := range roots {
		roots[i].Record = &catalogv1.Root{Repo: fmt.Sprintf("github.com/organisation%04d/repository%04d", i/10_000, i%10_000)}
	}
	chunks := chunksOf(roots)
	for i := 0; b.Loop(); i++ {
		put(slices.Clone(chunks), roots[i*7919%len(roots)])
	}
}
