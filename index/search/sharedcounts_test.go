package search_test

import (
	"fmt"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// TestCountsOfSharedContents: several documents have the same content, and some of them match by their path as well. Their matches are counted
// as brute force counts them, in nested queries of two or three texts.
func TestCountsOfSharedContents(t *testing.T) {
	documents := []indextest.Document{
		{Path: "a/nine.go", Content: []byte("key banana\n"), Branches: []string{"main"}},
		{Path: "a/x.go", Content: []byte("key banana\n"), Branches: []string{"main"}},
	}
	for i := range 100 { // so that words are looked up, not read
		documents = append(documents, indextest.Document{Path: fmt.Sprintf("b/%03d.go", i), Content: fmt.Appendf(nil, "other%d key banana nine\n", i), Branches: []string{"main"}})
	}
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: documents}}}
	s := openShard(t, buildShard(t, c))
	atoms := []string{"key", "banana", "nine", "f:nine", "c:nine", "none"}
	for _, a := range atoms {
		for _, b := range atoms {
			for _, d := range atoms {
				for _, form := range []string{"(%s %s) or %s", "(%[1]s %[2]s) or (%[1]s %[3]s)", "(%s or %s) %s", "%s or %s or %s", "%s -(%s %s)"} {
					checkCounts(t, s, c, fmt.Sprintf(form, a, b, d))
				}
			}
		}
	}
}

// checkCounts compares the counts of a query with brute force. Those that may be inexact may be lower.
func checkCounts(t *testing.T, s *search.Shard, c *indextest.Corpus, text string) {
	t.Helper()
	q := parse(t, text)
	found, err := indextest.Eval(c, q)
	if err != nil {
		t.Fatal(err)
	}
	matches := 0
	for _, f := range found {
		matches += f.Matches
	}
	for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
		res, err := searchTree(s, q, search.Options{MaxFiles: 3, MaxMatchesPerFile: 1, Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		files, counted := int(res.Stats.FilesMatched), int(res.Stats.Matches)
		if files > len(found) || counted > matches || !res.Stats.CountsInexact && (files < len(found) || counted < matches) {
			t.Errorf("%s, mode %d: %d files and %d matches (inexact: %t), not %d and %d", text, mode, files, counted, res.Stats.CountsInexact, len(found), matches)
		}
	}
}
