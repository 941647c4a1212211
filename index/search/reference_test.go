package search_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
)

// TestReferenceExamples searches with each example of docs/query.md: the shard finds what
// the oracle finds, which is something, but not everything.
func TestReferenceExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/query.md")
	if err != nil {
		t.Fatal(err)
	}
	corpus := referenceCorpus()
	documents := 0
	for _, r := range corpus.Repos {
		documents += len(r.Documents)
	}
	oracle, engine := indextest.NewOracle(corpus), engine(openShard(t, buildShard(t, corpus)))
	examples, version := 0, 0
	for line := range strings.Lines(string(page)) {
		if fence, ok := strings.CutPrefix(line, "```"); ok {
			version = map[string]int{"query\n": 1, "query-2\n": 2}[fence]
			continue
		}
		if version == 0 {
			continue
		}
		text, meaning, _ := strings.Cut(line, "⇒")
		text = strings.TrimRight(text, " ")
		q, err := query.Parse(text, query.ParseOptions{SyntaxVersion: version, Language: referenceLanguage})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if q, err = oracle.Resolve(q); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want, err := oracle.Eval(q)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := engine(q)
		if a, b := resultPaths(got), resultPaths(want); err != nil || !slices.Equal(a, b) {
			t.Errorf("%s: %v: the shard finds %q, the oracle %q", text, err, a, b)
		}
		everything := strings.Contains(meaning, "matches everything")
		if len(want) == 0 || (len(want) == documents) != everything {
			t.Errorf("%s finds %d of %d files:%s", text, len(want), documents, meaning)
		}
		examples++
	}
	if examples < 55 {
		t.Errorf("only %d examples", examples)
	}
}

func resultPaths(results []indextest.Result) (paths []string) {
	for _, r := range results {
		paths = append(paths, r.Repo+"/"+r.Path)
	}
	slices.Sort(paths)
	return paths
}

// referenceLanguage knows the languages of the examples.
func referenceLanguage(name string) string {
	if language := conformanceLanguage(name); language != "" {
		return language
	}
	return map[string]string{"c++": "C++", "cpp": "C++"}[strings.ToLower(name)]
}

// referenceCorpus has something to find for each example of docs/query.md.
func referenceCorpus() *indextest.Corpus {
	corpus := &indextest.Corpus{Name: "reference", Repos: []indextest.Repo{
		{Name: "github.com/org/linux", Branches: []string{"main", "release/1"}, Public: true, Meta: map[string]string{"team": "infra"}},
		{Name: "host/tools", Branches: []string{"main"}, Archived: true, Meta: map[string]string{"team": "infrared"}},
	}}
	for _, f := range referenceFiles {
		repo := &corpus.Repos[1]
		if strings.HasPrefix(f.branch, "linux ") {
			repo = &corpus.Repos[0]
		}
		_, branch, _ := strings.Cut(f.branch, " ")
		repo.Documents = append(repo.Documents, indextest.Document{
			Path: f.path, Content: []byte(f.content), Branches: []string{branch}, Language: f.language,
		})
	}
	return corpus
}

// referenceFiles are the files of the corpus, each on one branch of one of its repos.
var referenceFiles = []struct{ branch, path, language, content string }{
	{"linux main", "LICENSE", "Text", "begin\nof it\nend\n"},
	{"linux main", "README.md", "Markdown", "TODO: say \"hi\" to caf\u00e9, a or b\n"},
	{"linux release/1", "drivers/probe.c", "C", "int probe(int n) { return dma_map_single(n); }\n"},
	{"linux main", "go.mod", "Go Module", "module linux\n\nrequire grpc v1\n"},
	{"linux main", "include/list.hpp", "C++", "#define LIST_HEAD(n) n\nclass Reader { };\n"},
	{"linux main", "src/mm/slab.c", "C", "#include <mm.h>\nvoid *KMalloc(gfp GFP_KERNEL);\nint kmalloc(int n) { return n; }\nstruct file_operations ops;\n"},
	{"linux main", "src/mm/slab_test.c", "C", "int main(void) { return vmalloc(kmalloc(1)); }\n"},
	{"tools main", "README.md", "Markdown", "file:x and f:main, sub-pixel -Wall, (abc)(de) abcde, abc def, foo bar, a 1 b c\n"},
	{"tools main", "docs/main x.txt", "Text", "err: a timeout. We fopen(it).\n"},
	{"tools main", "read.go", "Go", "package read\n\ntype Reader struct{}\n\nfunc newReader() *Reader { return newReader() }\n"},
	{"tools main", "read_test.go", "Go", "package read\n\nfunc TestReader(t *testing.T) { newReader() }\n"},
	{"tools main", "runtime/gc.go", "Go", "package runtime\n\n// How does it mark? TODO\ntype Server struct{}\n\nfunc (s *Server) Close() { fooHandler() }\n\nfunc fooHandler() { errors.Is(Foo, BAR) }\n"},
	{"tools main", "zz.txt", "Text", "0\n"},
}
