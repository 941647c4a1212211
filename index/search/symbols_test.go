package search_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// symbolCorpus is code of this module and of other languages. Some of it is in files of two languages, and some in opaque
// superblocks.
func symbolCorpus(t *testing.T) *indextest.Corpus {
	t.Helper()
	main := []string{"main"}
	repo := indextest.Repo{Name: "example.com/code", Branches: main}
	paths, err := filepath.Glob("*.go")
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d files: %v", len(paths), err)
	}
	add := func(path, language string, content []byte) {
		repo.Documents = append(repo.Documents, indextest.Document{Path: path, Content: content, Branches: main, Language: language})
	}
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		switch i % 7 {
		case 5:
			text = append([]byte("// \u212Aelvin\n"), text...) // makes its first superblock opaque
		case 6:
			text = append(text, []byte("\nfunc "+strings.Repeat("long", 40)+"() {}\nfunc afterLong() {}\n")...)
		}
		add(path, "Go", text)
	}
	add("a.py", "Python", []byte("class Reader:\n    def read_all(self):\n        reader = Reader()\n\ndef newReader(): pass\n"))
	add("a.py.txt", "Text", repo.Documents[len(repo.Documents)-1].Content)
	add("b.txt", "Text", []byte("class Second:\n  def twice(self): pass\n"))
	add("c.py", "Python", []byte("class Second:\n  def twice(self): pass\n"))
	add("d.c", "C", []byte("#define MAX_READERS 5\nstruct reader { int fd; };\nint read_all(struct reader *r) { return newReader(r); }\n"))
	add("e.js", "JavaScript", []byte("function $read(a) {}\nclass Reader { read_all() {} }\nconst na\u00efve = () => 1\n"))
	add("f.rb", "Ruby", []byte("class Reader\n  def read_all?\n  end\nend\n"))
	add("g.sh", "Shell", []byte("read-all() {\n  newReader\n}\n"))
	return &indextest.Corpus{Name: "symbols", Repos: []indextest.Repo{repo}}
}

var symbolQueries = []string{
	"sym:newReader", "sym:NewReader", "sym:reader", "case:yes sym:reader", "case:yes sym:Reader", "sym:read", "sym:^read", "sym:^reader$", "sym:reader$", "sym:\\bread",
	"sym:s", "sym:newMatching", "sym:matching", "sym:Second", "sym:twice", "sym:longlong", "sym:afterlong", "sym:read_all", "sym:^read_all$", "sym:read-all", "sym:read.all",
	"sym:[a-z]+Atom$", "sym:^new[A-Z][a-z]+$", "sym:(text|name)Atom", "sym:.*", "sym:x*", "sym:\\$read", "sym:na\u00efve", "sym:ve", "sym:\"all?\"", "sym:all\\?", "sym:max_readers", "sym:MAX",
	"sym:matches lang:go", "-sym:matches", "sym:matches -sym:gather", "sym:matches or sym:twice", "sym:matches func", "sym:atom f:atom", "type:file sym:atom", "(type:repo sym:twice )",
	"sym:nobodyHasThis", "sym:if", "sym:return", "sym:kelvin", "sym:^$", "sym:search sym:query", "lang:python sym:class", "lang:text sym:Second",
}

// TestSymbols finds the names of symbols as brute force does: in marked and unmarked
// shards.
func TestSymbols(t *testing.T) {
	checkSymbols(t, "symbols", symbolQueries)
}

var referenceQueries = []string{
	"ref:newReader", "ref:NewReader", "ref:\\bReader\\b", "case:yes ref:\\breader\\b", "ref:read", "ref:^func", "ref:s", "ref:matching", "ref:Second", "ref:class", "ref:kelvin",
	"ref:afterLong", "ref:\\bafterLong\\b", "ref:read_all", "ref:\"func .s\"", "ref:na\u00efve", "ref:\\bmatches\\b lang:go", "-ref:matches", "ref:matches -sym:matches",
	"ref:\\bmatches\\b sym:\\bmatches\\b", "ref:matches or sym:matches", "ref:reader func", "ref:gather f:atom", "type:file ref:gather", "(type:repo ref:twice )", "ref:.", "ref:x*",
	"sym.kind:method", "sym.kind:method sym:matches", "sym.kind:type sym.kind:macro sym:read", "type:symbol atom", "type:symbol atom or reader", "type:symbol -sym.kind_x", "type:symbol sym.kind:function ^read",
}

// TestReferences finds texts outside of the names of symbols, and symbols by kind, as brute force does, in marked and
// unmarked shards.
func TestReferences(t *testing.T) {
	checkSymbols(t, "references", referenceQueries)
}

// checkSymbols compares queries with brute force in a marked shard and in one that rules of another version marked.
func checkSymbols(t *testing.T, kind string, texts []string) {
	t.Helper()
	c := symbolCorpus(t)
	var queries []indextest.Query
	for i, text := range texts {
		queries = append(queries, indextest.Query{Text: text, Kind: kind, Number: i})
	}
	data := buildShard(t, c)
	indextest.Check(t, c, queries, engine(openShard(t, data)))
	unmarked := resealed(t, data, map[string][]byte{"WDEF": {0, 0, 0, 0}})
	indextest.Check(t, c, queries, engine(openShard(t, unmarked)))
}

// TestOwnFields compares queries with fields of version 2 with brute force on random corpora, and their best files with the
// first of all files.
func TestOwnFields(t *testing.T) {
	for seed := range testrun.Rounds[uint64](6, 20) {
		c := indextest.Random(seed)
		s := openShard(t, buildShard(t, c))
		queries := indextest.OwnQueries(c, seed, 64)
		indextest.Check(t, c, queries, engine(s))
		for i, q := range queries {
			ready := prepareOwn(t, q.Text)
			opts := search.Options{MaxFiles: 1 + i%7, MaxMatchesPerFile: 5}
			whole := run(t, s, ready, opts)
			opts.Mode = search.TopK
			if got := run(t, s, ready, search.WithHelpers(opts, i%3)); !sameFiles(got.Files, whole.Files) {
				t.Fatalf("seed %d, %s, best %d:\n%v\nwant\n%v", seed, q.Text, opts.MaxFiles, got.Files, whole.Files)
			}
		}
	}
}

// TestDefinitionsAndReferences finds each place of a whole word exactly once: as a definition or as a reference.
func TestDefinitionsAndReferences(t *testing.T) {
	s := openShard(t, buildShard(t, symbolCorpus(t)))
	for _, word := range []string{"matches", "Reader", "read_all", "newReader", "Second", "s", "search", "func", "afterLong", "nowhere"} {
		places := func(queries ...string) (all []string) {
			for _, q := range queries {
				res := run(t, s, prepareOwn(t, "case:yes "+q), search.Options{MaxFiles: 1 << 20, MaxMatchesPerFile: 1 << 20})
				for _, f := range res.Files {
					for _, chunk := range f.Chunks {
						for _, r := range chunk.Ranges {
							all = append(all, fmt.Sprintf("%s %d", f.Path, r.Start.Offset))
						}
					}
				}
			}
			slices.Sort(all)
			return all
		}
		whole := `\b` + word + `\b`
		if got, want := places("sym:"+whole, "ref:"+whole), places("c:"+whole); !slices.Equal(got, want) {
			t.Errorf("%s: %d definitions and references, the word is in %d places", word, len(got), len(want))
		}
	}
}

// prepareOwn prepares a query of syntax version 2.
func prepareOwn(t *testing.T, text string) *search.Query {
	t.Helper()
	tree, err := query.Parse(text, query.ParseOptions{SyntaxVersion: 2})
	if err == nil {
		var ready *search.Query
		if ready, err = search.Prepare(tree); err == nil {
			return ready
		}
	}
	t.Fatalf("%s: %v", text, err)
	return nil
}

// TestBestDefinitionsOfTwoShards finds the best definitions in the second of two shards, while those of the first are better
// than everything without a definition.
func TestBestDefinitionsOfTwoShards(t *testing.T) {
	var parts []part
	var all []indextest.Repo
	for i, times := range []int{4, 8} {
		repo := indextest.Repo{Name: fmt.Sprint("r", i), Branches: []string{"main"}}
		for n := range 200 {
			repo.Documents = append(repo.Documents, indextest.Document{
				Path: fmt.Sprintf("%03d.go", n), Branches: repo.Branches, Language: "Go", Content: fmt.Appendf(nil, "// %d %d\n%s", i, n, strings.Repeat("\nfunc target() {}\n", times)),
			})
		}
		parts = append(parts, part{shard: openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{repo}}))})
		all = append(all, repo)
	}
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: all}))
	for _, text := range []string{"sym:target", "sym:(target|other)", "ref:target", "target", "(target|other)"} {
		q, opts := prepareOwn(t, text), search.Options{MaxFiles: 10, MaxMatchesPerFile: 3}
		want := run(t, s, q, opts)
		opts.Mode = search.TopK
		if got, err := searchParts(parts, q, opts); err != nil || !sameFiles(got.Files, want.Files) {
			t.Errorf("%s: %v\n%v\nwant\n%v", text, err, got.Files, want.Files)
		}
	}
}
