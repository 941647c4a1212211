package shard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
)

// symbolCorpus is code of this module, and of other languages, some of it in files of two
// languages, and in superblocks that are opaque.
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
			text = append([]byte("// \u212Aelvin\n"), text...) // its first superblock is opaque
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

// TestSymbols finds the names of symbols as brute force does: in marked shards, in merged ones,
// and in those of an older format.
func TestSymbols(t *testing.T) {
	c := symbolCorpus(t)
	var queries []indextest.Query
	for i, text := range symbolQueries {
		queries = append(queries, indextest.Query{Text: text, Kind: "symbols", Number: i})
	}
	data := buildShard(t, c)
	indextest.Check(t, c, queries, engine(openShard(t, data)))
	unmarked := resealed(t, data, map[string][]byte{"WDEF": {1, 0, 0, 0, 0}}) // by rules of another version
	indextest.Check(t, c, queries, engine(openShard(t, unmarked)))
}
