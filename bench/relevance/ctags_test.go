package relevance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/bench/peer"
)

// definingExamples are files that define some names and have others: those of other files, those of containers and local ones.
var definingExamples = []struct{ path, text, defines, not string }{
	{
		"a/shape.go", "package shape\n\nimport other \"fmt\"\n\ntype Shape interface {\n\tDrawShape() Result\n}\n\ntype Circle struct {\n\tEmbedded\n\tRadius int\n}\n\n" +
			"const Limit = 3\n\nfunc NewCircle(param int) *Circle {\n\tlocalName := other.Sprint(param)\n\treturn Called(localName)\n}\n",
		"Shape DrawShape Circle Radius Limit NewCircle", "shape other Result Embedded param localName Called",
	},
	{
		"table.h", "#include \"included.h\"\nnamespace outer {\nclass Table {\n public:\n  explicit Table(int size) : size_(size) {}\n" +
			"  int InlineSize() const { return size_; }\n  int OnlyDeclared() const;\n private:\n  int size_;\n};\n}\n",
		"Table InlineSize size_", "included.h outer OnlyDeclared size",
	},
	{
		"send.c", "#define SEND_LIMIT 5\nstruct sender { int handle; };\nint sendLater(int fd);\nint sendAll(int fd) { int sent = callOther(fd); return sent; }\n",
		"SEND_LIMIT sender handle sendAll", "sendLater fd sent callOther",
	},
	{
		"Reader.java", "package com.example;\nimport java.util.List;\npublic class Reader {\n  private int depth;\n  public Reader(List<String> in) {}\n  int readAll() { int local = 0; return local; }\n}\n",
		"Reader depth readAll", "com example com.example List local in",
	},
	{"serve.js", "const parse = require('parser');\nfunction serveFiles(root) { return parse(root); }\nexports.answer = function answer(req) {};\n", "serveFiles answer", "parser root req"},
	{
		"types.ts", "import { type Imported } from './other'\nexport interface Options {\n  deepFlag: boolean\n}\n" +
			"export class Runner {\n  runAll(): Imported { return null! }\n}\nexport const answer = 1\n",
		"Options deepFlag Runner runAll answer", "Imported other",
	},
	{
		"app.py", "import imported\nfrom other import name as renamed\n\nclass Thing:\n    limit = 3\n\n    def get_it(self, param):\n        local = imported.call(param)\n        return local\n",
		"Thing limit get_it", "imported other name renamed self param local call",
	},
	{
		"lib.rs", "mod inner;\nuse other::Used;\npub struct Parser { depth: u8 }\nimpl Display for Parser { fn fmt(&self) { let local = 1; } }\npub trait Visit { fn visit_it(&self); }\n",
		"Parser depth fmt Visit visit_it", "inner other Used Display local",
	},
}

// TestDefining: what counts as a definition of a name, in each language of the repos.
func TestDefining(t *testing.T) {
	if _, ok := peer.Ctags(); !ok {
		t.Skip(errNoCtags)
	}
	dir := t.TempDir()
	var files []*file
	for _, c := range definingExamples {
		full := filepath.Join(dir, filepath.FromSlash(c.path))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, &file{repo: "r", path: c.path})
	}
	found, err := defining(t.Context(), dir, files)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range definingExamples {
		for name := range strings.FieldsSeq(c.defines) {
			if !slices.Contains(found[name], files[i]) {
				t.Errorf("%s does not define %s", c.path, name)
			}
		}
		for name := range strings.FieldsSeq(c.not) {
			if slices.Contains(found[name], files[i]) {
				t.Errorf("%s defines %s", c.path, name)
			}
		}
	}
	if in := found["answer"]; len(in) != 2 || in[0] != files[4] || in[1] != files[5] {
		t.Errorf("answer is defined in %d files, not in these two in order", len(in))
	}
}

// TestReadTags: a file counts once for a name, and lines that are no tags of the files are errors.
func TestReadTags(t *testing.T) {
	a, b := &file{path: "a.go"}, &file{path: "b.go"}
	byPath := map[string]*file{a.path: a, b.path: b}
	tags, err := readTags([]byte(`{"_type":"tag","name":"Open","path":"a.go","line":3}
{"_type":"tag","name":"Open","path":"b.go","line":1}
`), byPath)
	if err != nil || !slices.Equal(tags, []tag{{"Open", a, 3}, {"Open", b, 1}}) {
		t.Errorf("read %v: %v", tags, err)
	}
	for _, bad := range []string{"ctags: broken", `{"_type":"tag","name":"Open","path":"c.go"}`} {
		if _, err := readTags([]byte(bad), byPath); err == nil {
			t.Errorf("%s is read as a tag", bad)
		}
	}
}
