package search_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// TestLineScores: with LineScores each match has the score of its line, whether all lines of the file are shown or the best, and however its
// matches were found. The best line is the one that is shown where only one is.
func TestLineScores(t *testing.T) {
	text := "// render is slow\nthe prerendered\n\trender(1)\n\trender, then render\nfunc render() {\n" + strings.Repeat("\tvalue := compute(a, b)\n", 400) + "\trender(2)\n"
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
		{Path: "x.go", Content: []byte(text), Branches: []string{"main"}, Language: "Go"},
	}}}}))
	find := func(query string, opts search.Options) string {
		opts.MaxFiles = 1
		var lines []string
		for _, c := range mustSearch(t, s, parseNewest(t, query), opts).Files[0].Chunks {
			for _, r := range c.Ranges {
				lines = append(lines, fmt.Sprintf("%d:%.2f", r.Start.Line, r.LineScore))
			}
		}
		return strings.Join(lines, " ")
	}
	for _, query := range []string{"render", `"render"`, "rend[e]r"} {
		for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
			for most, want := range map[int]string{
				100: "1:0.73 2:0.68 3:0.98 4:0.96 4:0.96 5:1.94 406:0.98",
				3:   "3:0.98 5:1.94 406:0.98",
				1:   "5:1.94",
			} {
				if got := find(query, search.Options{Mode: mode, MaxMatchesPerFile: most, LineScores: true}); got != want {
					t.Errorf("%s, up to %d, mode %d: %s, want %s", query, most, mode, got, want)
				}
			}
			if got := find(query, search.Options{Mode: mode, MaxMatchesPerFile: 2}); strings.Count(got, ":0.00") != 2 {
				t.Errorf("%s, mode %d: scores that nobody asked for: %s", query, mode, got)
			}
		}
	}
	if got := find("f:x", search.Options{MaxMatchesPerFile: 9, LineScores: true}); got != "1:0.00" {
		t.Errorf("of a path: %s", got)
	}
}
