package search_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// TestRankingPage runs the examples of docs/ranking.md and checks the order and the parts of the
// scores that the page shows.
func TestRankingPage(t *testing.T) {
	for query, contents := range map[string]map[string]string{
		"open": {
			"io/file.go": "package io\n\n// open opens.\nfunc open() {}\n",
			"io/use.go":  "package io\n\nfunc use() {\n\topen()\n\topen()\n\topen()\n}\n",
		},
		"read file header": {
			"a.txt": "To read a file,\nskip its header.\n",
			"b.txt": "The header of the file is read.\n",
			"c.txt": "We read file header by header.\n",
		},
	} {
		checkExample(t, query, contents)
	}
	parse := func(path string, times int) indextest.Document {
		return indextest.Document{Path: path, Content: []byte(strings.Repeat("parse()\n", times)), Branches: []string{"main"}}
	}
	checkOrder(t, "parse", &indextest.Corpus{Repos: []indextest.Repo{
		{Name: "attic", Branches: []string{"main"}, Documents: []indextest.Document{parse("a.go", 1), parse("b.go", 2)}},
		{Name: "core", Branches: []string{"main"}, Rank: 80, Documents: []indextest.Document{parse("a.go", 1)}},
	}})
}

func checkExample(t *testing.T, query string, contents map[string]string) {
	t.Helper()
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	for _, path := range slices.Sorted(maps.Keys(contents)) {
		d := indextest.Document{Path: path, Content: []byte(contents[path]), Branches: []string{"main"}}
		if strings.HasSuffix(path, ".go") {
			d.Language = "Go"
		}
		c.Repos[0].Documents = append(c.Repos[0].Documents, d)
	}
	checkOrder(t, query, c)
}

// checkOrder looks for the answer to a query on the page, with the names of repos if they are several.
func checkOrder(t *testing.T, query string, c *indextest.Corpus) {
	t.Helper()
	res := mustSearch(t, openShard(t, buildShard(t, c)), parse(t, query), search.Options{MaxFiles: 9, Explain: true})
	var shown strings.Builder
	for _, f := range res.Files {
		name := string(f.Path)
		if len(c.Repos) > 1 {
			name = f.Repo + ":" + name
		}
		fmt.Fprintf(&shown, "%-12s %s\n", name, f.Explanation)
	}
	page, err := os.ReadFile("../../docs/ranking.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```text\n"+shown.String()+"```\n") {
		t.Errorf("docs/ranking.md does not show\n%s", shown.String())
	}
}
