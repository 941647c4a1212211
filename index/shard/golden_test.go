package shard_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/indextest"
)

// golden is the corpus of the committed shards. It must stay as it is: the
// shards are never written anew within a version of the format.
func golden() *indextest.Corpus {
	both, main, next := []string{"main", "next"}, []string{"main"}, []string{"next"}
	return &indextest.Corpus{Name: "golden", Repos: []indextest.Repo{
		{
			Name: "example.com/empty", Branches: main, Archived: true,
		},
		{
			Name: "example.com/first", Branches: both, Public: true, Meta: map[string]string{"team": "search"},
			Documents: []indextest.Document{
				{Path: "LICENSE", Content: []byte("Do what you want.\n"), Branches: both, Language: "Text"},
				{Path: "empty.txt", Content: []byte{}, Branches: main, Language: "Text"},
				{Path: "greet/greet.go", Content: []byte("package greet\n\n// Hello greets the World.\nfunc Hello() string { return \"Hello, World\" }\n"), Branches: main, Language: "Go"},
				{Path: "greet/greet.go", Content: []byte("package greet\n\n// Hello greets nobody.\nfunc Hello() string { return \"\" }\n"), Branches: next, Language: "Go"},
				{Path: "large.c", Content: goldenSource(700), Branches: both, Language: "C"},
				{Path: "logo.png", Branches: both, Skipped: true},
				{Path: "unicode.md", Content: []byte("Grüße, ΚΌΣΜΕ, мир, 世界, K as Kelvin, \xff\xfe not UTF-8\r\nno end of line"), Branches: next, Language: "Markdown"},
			},
		},
		{
			Name: "example.com/second", Branches: main, Fork: true,
			Documents: []indextest.Document{
				{Path: "COPYING", Content: []byte("Do what you want.\n"), Branches: main, Language: "Text"},
				{Path: "src/caf\xe9.c", Content: goldenSource(40), Branches: main, Language: "C"},
			},
		},
	}}
}

// goldenSource is some lines of C, for several superblocks and a dictionary.
func goldenSource(lines int) []byte {
	var b bytes.Buffer
	words := strings.Fields("status error Buffer LENGTH index offset readBytes write_all Next x")
	for i := range lines {
		a, c := words[i*i%len(words)], words[i*7/3%len(words)]
		b.WriteString("static int " + a + "_" + c + "(struct device *dev) { return dev->" + c + " + " + strings.Repeat("0", i%5) + "1; }\n")
	}
	return b.Bytes()
}

// goldenQueries need every section of a shard.
var goldenQueries = []string{
	"hello", "case:yes Hello", "case:yes hello", "World or nobody", "\"return dev\"", "content:xe", "content:z",
	"regex:func\\s+\\w+\\(\\)", "/[0-9]{5};/", "file:greet", "file:caf", "lang:go package", "branch:next greet", "r:second want",
	"archived:yes", "fork:yes static", "public:yes want", "grüsse or grüße", "κόσμε", "мир", "世界", "kelvin", "-lang:c -lang:text",
	"file:logo", "case:yes LENGTH_", "readBytes_write_all or buffer_status", "zzz",
}

// TestGoldenShards opens the committed shards of format version 1, which every
// later reader must: they are verified to the last posting, and answer as brute
// force does.
func TestGoldenShards(t *testing.T) {
	if os.Getenv("TRAWL_UPDATE_GOLDEN") != "" {
		writeGolden(t)
	}
	paths, err := filepath.Glob("../testdata/v1/*.trawl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden shards: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := openShard(t, data)
		if err := s.Verify(context.Background()); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		c := golden()
		var queries []indextest.Query
		for i, text := range goldenQueries {
			queries = append(queries, indextest.Query{Text: text, Kind: path, Number: i})
		}
		indextest.Check(t, c, append(queries, indextest.Queries(c, 1, 300)...), engine(s))
	}
}

func writeGolden(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll("../testdata/v1", 0o750); err != nil {
		t.Fatal(err)
	}
	for name, effort := range map[string]docstore.Effort{"fresh": docstore.Fresh, "compact": docstore.Compact} {
		data := buildShardWith(t, golden(), build.Options{Effort: effort})
		if err := os.WriteFile("../testdata/v1/"+name+".trawl", data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
