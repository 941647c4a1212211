package search_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestHostileTexts searches texts that are unlike source code, next to ordinary ones. With
// opaque superblocks or very many words, the answers are as exact as for others.
func TestHostileTexts(t *testing.T) {
	size, queries := testrun.Rounds(40_000, 300_000), testrun.Rounds(1, 5)*indextest.Kinds()
	for _, name := range slices.Sorted(maps.Keys(indextest.Hostile)) {
		t.Run(name, func(t *testing.T) {
			hostile := indextest.Hostile[name](size)
			source := goldenSource(100)
			mixed := slices.Concat(source, hostile[:size/4], source, hostile[size/2:size/2+6_000], source)
			c := &indextest.Corpus{Name: name, Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
				{Path: "a.c", Content: source, Branches: []string{"main"}},
				{Path: "hostile", Content: hostile, Branches: []string{"main"}},
				{Path: "mixed", Content: mixed, Branches: []string{"main"}},
			}}}}
			s := openShard(t, buildShard(t, c))
			if err := s.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			indextest.Check(t, c, indextest.Queries(c, 1, queries), engine(s))
		})
	}
}
