package search_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// definitions is a corpus that defines a few names in some documents and uses them in many. Among
// the documents are long ones, tests, some with opaque superblocks and some of no language.
func definitions(seed uint64) *indextest.Corpus {
	rnd := rand.New(rand.NewPCG(seed, 9))
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	c := &indextest.Corpus{}
	for r := range 3 {
		repo := indextest.Repo{Name: fmt.Sprintf("r%d", r), Branches: []string{"main"}}
		for i := range 30 + rnd.IntN(60) {
			var text bytes.Buffer
			fmt.Fprintf(&text, "package p%d\n", r*1000+i)
			for range rnd.IntN(12) {
				name := pick("foo", "Foo", "FOO", "bar", "foobar", "x", "task", "\u212Aey", "foo_bar", "fooBar", "barFoo")
				text.WriteString(pick("func "+name+"() {}\n", name+"()\n", name+"()\n", "// "+name+" "+name+"\n", "type "+name+" struct{}\n"))
				if rnd.IntN(15) == 0 {
					text.WriteString(pick(strings.Repeat("// long\n", 700), "// "+strings.Repeat("long", 40)+"\n"))
				}
			}
			d := indextest.Document{
				Path:     pick("", "", "tests/", "vendor/", "foo/") + pick("a", "b", "foo_bar", "bar") + fmt.Sprintf("/%03d", i) + pick("", "foo", "bar_foo") + ".go",
				Content:  text.Bytes(),
				Branches: repo.Branches,
			}
			if rnd.IntN(4) > 0 {
				d.Language = "Go"
			}
			repo.Documents = append(repo.Documents, d)
		}
		slices.SortFunc(repo.Documents, func(a, b indextest.Document) int { return strings.Compare(a.Path, b.Path) })
		c.Repos = append(c.Repos, repo)
	}
	return c
}

// TestDefinitionsRank: documents score as in the oracle, which looks for definitions in their text.
// The best files are the first of the exhaustive search: in one shard, in a merged one, in two with
// a floor, and with helpers.
func TestDefinitionsRank(t *testing.T) {
	texts := []string{
		"foo", "case:yes Foo", "c:foo", "f:foo", "foo bar", "foo or bar", "foo -bar", "x", "k", "task lang:go", "foo f:tests", "test foo", "foobar", "bar foo x",
		"c:foo\\(", "\"foo()\"", "foo b.r", "case:yes foo foobar", "key", "foo f:foo_bar", "-foo x", "(foo bar) or x", "foo bar f:foo", "case:yes foo Bar", "bar foo -x", "Foo bar lang:go", "c:foo bar x",
	}
	least, left := 0, 0
	for seed := range testrun.Rounds[uint64](2, 8) {
		c := definitions(seed)
		rnd := rand.New(rand.NewPCG(seed, 10))
		whole := openShard(t, buildShard(t, c))
		var queries []indextest.Query
		for i, text := range texts {
			queries = append(queries, indextest.Query{Text: text, Kind: "definitions", Seed: seed, Number: i})
		}
		indextest.CheckPages(t, c, queries, form{name: "fresh", parts: []part{{shard: whole}}}.pager())
		var halves []part
		for _, repos := range [][]indextest.Repo{c.Repos[:1], c.Repos[1:]} {
			halves = append(halves, part{shard: openShard(t, buildShard(t, &indextest.Corpus{Repos: repos}))})
		}
		for _, s := range []*search.Shard{whole, mergedShard(t, c, rnd)} {
			for _, text := range texts {
				q := prepare(t, parse(t, text))
				opts := search.Options{MaxFiles: 1 + rnd.IntN(12), MaxMatchesPerFile: 3, After: somewhere(s, q, rnd)}
				want := run(t, s, q, opts)
				opts.Mode = search.TopK
				for helpers := range 2 {
					got := run(t, s, q, search.WithHelpers(opts, helpers))
					if !sameFiles(got.Files, want.Files) {
						t.Fatalf("seed %d, %s, best %d after %v:\n%+v\nwant\n%+v", seed, text, opts.MaxFiles, opts.After, got.Files, want.Files)
					}
					left += int(want.Stats.FilesMatched - got.Stats.FilesMatched)
				}
				parts, err := searchParts(halves, q, opts)
				if err != nil || !sameFiles(parts.Files, want.Files) {
					t.Fatalf("seed %d, %s, best %d in two shards: %v\n%+v\nwant\n%+v", seed, text, opts.MaxFiles, err, parts.Files, want.Files)
				}
				least++
			}
		}
	}
	if left < least {
		t.Errorf("only %d files were left out in %d searches", left, least)
	}
}
