package regex_test

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
)

// fromQueries are expressions from the tests of the query language.
var fromQueries = []string{
	`foo.*bar`, `abc[p-q]`, `(foo|bar)baz`, `f(oo)?`, `\bword\b`, `^start`, `end$`, `^$`, `(?i)straße`, `a\.b`, `\d+\.\d+`, `[[:alpha:]_]\w*`, `(?s)a.b`, `(?-i)A`,
	`main\.go$`, `\.(go|c)$`, `[^/]+$`, `(?:)`, `x{2,3}?`, `\x{212A}`, `\pN`, `"[^"]*"`, `\t+`, `\s+$`, `TODO|FIXME`, `func \([a-z]+ \*?\w+\)`, `\w+::\w+`, `(a|ab)(bc|c)`,
}

// TestExpressionsOfQueries compares Ranges with FindAllIndex for all expressions
// of generated queries, on all documents and paths of generated corpora.
func TestExpressionsOfQueries(t *testing.T) {
	matches := 0
	for seed := range uint64(6) {
		c := indextest.Random(seed)
		trees := map[string]*syntax.Regexp{}
		for _, source := range fromQueries {
			tree, err := syntax.Parse(source, query.Flags)
			if err != nil {
				t.Fatal(err)
			}
			trees[source] = tree
		}
		for _, text := range indextest.Queries(c, seed, 400) {
			q, err := query.Parse(text.Text, query.ParseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			query.Walk(q, func(q query.Q) bool {
				if q, ok := q.(*query.Regexp); ok {
					trees[q.Tree.String()] = q.Tree
				}
				return true
			})
		}
		for _, tree := range trees {
			matches += compare(t, tree, seed%2 == 0, c)
		}
	}
	if matches < 1000 {
		t.Errorf("only %d matches: the test says little", matches)
	}
}

func compare(t *testing.T, tree *syntax.Regexp, caseSensitive bool, c *indextest.Corpus) (matches int) {
	t.Helper()
	m, err := regex.NewMatcher(tree, caseSensitive)
	if err != nil {
		t.Fatal(err)
	}
	re, err := regex.Compile(tree, caseSensitive)
	if err != nil {
		t.Fatal(err)
	}
	for _, repo := range c.Repos {
		for _, doc := range repo.Documents {
			matches += same(t, m, re, doc.Content) + same(t, m, re, []byte(doc.Path))
		}
	}
	return matches
}

func same(t *testing.T, m regex.Matcher, re *regexp.Regexp, text []byte) int {
	t.Helper()
	var got [][2]int
	for start, end := range regex.Ranges(m, text) {
		got = append(got, [2]int{start, end})
	}
	var want [][2]int
	for _, loc := range re.FindAllIndex(text, -1) {
		if loc[0] < loc[1] {
			want = append(want, [2]int(loc))
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s in %q: %v, want %v", re, text, got, want)
	}
	return len(got)
}
