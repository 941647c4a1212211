package shard_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/shard"
)

// TestRankingPage runs the example of docs/ranking.md: the page shows the order and the parts of the scores.
func TestRankingPage(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	for path, content := range map[string]string{
		"io/file.go": "package io\n\n// open opens.\nfunc open() {}\n",
		"io/use.go":  "package io\n\nfunc use() {\n\topen()\n\topen()\n\topen()\n}\n",
	} {
		c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{Path: path, Content: []byte(content), Branches: []string{"main"}, Language: "Go"})
	}
	if docs := c.Repos[0].Documents; docs[0].Path > docs[1].Path {
		docs[0], docs[1] = docs[1], docs[0]
	}
	res := mustSearch(t, openShard(t, buildShard(t, c)), parse(t, "open"), shard.Options{MaxFiles: 9, Explain: true})
	var shown strings.Builder
	for _, f := range res.Files {
		fmt.Fprintf(&shown, "%-12s %s\n", f.Path, f.Explanation)
	}
	page, err := os.ReadFile("../../docs/ranking.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```text\n"+shown.String()+"```\n") {
		t.Errorf("docs/ranking.md does not show\n%s", shown.String())
	}
}
