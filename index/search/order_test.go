package search_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// TestOrder shows the order of files in the answers to some queries.
func TestOrder(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	contents := map[string]string{
		"core/search.go":             "package core\n\n// search reads stdin.\nfunc search(stdin file) {}\n",
		"examples/search-stdin.go":   "package main\n\n// search is of\n// stdin here\n",
		"server/server.go":           "package server\n\ntype server struct{}\n// The auth of a server\n// has a token.\n",
		"server/auth/token.go":       "package auth\n\n// server and auth\nvar token = 1\n",
		"api/options.ts":             "// compiler options at runtime\nlet options\n",
		"spec/compilerOptions.ts":    "// options\n// of the compiler\n",
		"e2e/compilerOptions.e2e.ts": "// options\n// of the compiler\n",
		"CHANGES":                    "search of stdin, with a server\n",
		"guide.md":                   "search of stdin, with a server that has a token for auth\n",
	}
	for _, path := range slices.Sorted(maps.Keys(contents)) {
		d := indextest.Document{Path: path, Content: []byte(contents[path]), Branches: []string{"main"}}
		if strings.HasSuffix(path, ".go") {
			d.Language = "Go"
		}
		c.Repos[0].Documents = append(c.Repos[0].Documents, d)
	}
	s := openShard(t, buildShard(t, c))
	var shown strings.Builder
	for _, q := range []string{"search stdin", "server auth token", "compiler options"} {
		fmt.Fprintf(&shown, "%s:", q)
		for _, f := range mustSearch(t, s, parse(t, q), search.Options{MaxFiles: 9}).Files {
			fmt.Fprintf(&shown, " %s %g", f.Path, f.Score)
		}
		shown.WriteByte('\n')
	}
	const want = `search stdin: examples/search-stdin.go 1210 core/search.go 870 CHANGES 225 guide.md 225
server auth token: server/auth/token.go 852 server/server.go 748 guide.md 337.5
compiler options: e2e/compilerOptions.e2e.ts 1210 spec/compilerOptions.ts 1210 api/options.ts 785
`
	if shown.String() != want {
		t.Errorf("in order:\n%s\nwant\n%s", shown.String(), want)
	}
}
