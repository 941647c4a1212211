package search_test

import (
	"fmt"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// TestBestOfAlternatives: only the atoms of an "or" that match count for the score, even
// where documents that cannot be among the best are only counted.
func TestBestOfAlternatives(t *testing.T) {
	repo := indextest.Repo{Name: "r", Branches: []string{"main"}}
	for i, content := range []string{"bar", "xbar", "foo foo foo", "foo", "bar foo", "bar foo bar foo", "tests of bar"} {
		repo.Documents = append(repo.Documents, indextest.Document{Path: fmt.Sprint(i), Content: []byte(content), Branches: []string{"main"}})
	}
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{repo}}))
	for _, text := range []string{"foo or bar", "foo", "foo bar", "foo or bar or tests", "c:foo or c:ar", "foo or (bar tests)"} {
		all := mustSearch(t, s, parse(t, text), search.Options{MaxFiles: 100})
		for limit := 1; limit < len(all.Files); limit++ {
			for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
				best := mustSearch(t, s, parse(t, text), search.Options{MaxFiles: limit, Mode: mode})
				if !sameFiles(best.Files, all.Files[:limit]) {
					t.Errorf("%s, the best %d: %v, want %v", text, limit, best.Files, all.Files[:limit])
				}
			}
		}
	}
}
