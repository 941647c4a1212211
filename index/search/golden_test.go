package search_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/internal/testrun"
)

// golden is the corpus of the committed shards. It must not change: once a version of the format is
// released, its shards are never rewritten.
func golden() *indextest.Corpus {
	c := goldenSmall()
	second := &c.Repos[len(c.Repos)-1]
	second.Documents = append(second.Documents,
		indextest.Document{Path: "sums.txt", Content: goldenSums(), Branches: []string{"main"}, Language: "Text"},
		indextest.Document{Path: "words.txt", Content: goldenWords(), Branches: []string{"main"}, Language: "Text"})
	return c
}

// goldenSmall is the part of golden without the files that test words.
func goldenSmall() *indextest.Corpus {
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

// goldenRanks is a corpus of three repos with ranks, one of them 0.
func goldenRanks() *indextest.Corpus {
	c := goldenSmall()
	for i, rank := range []uint8{100, 0, 55} {
		c.Repos[i].Rank = rank
	}
	return c
}

// goldenWords has words of all spellings and lengths. Its second and fourth superblocks are opaque:
// one has a word that is too long, the other a rune that folds to k.
func goldenWords() []byte {
	var b bytes.Buffer
	fill := func(to int) { b.WriteString(strings.Repeat("filling ", to/8+1)[:to-b.Len()]) }
	for i := range 300 {
		fmt.Fprintf(&b, "name%03d ", i*7%300) // more than one superblock of the lexicon
	}
	b.WriteString("readBytes ReadBytes READBYTES rEADbYTES x_Y 0xFF Z\n")
	for _, size := range []int{14, 15, 16, 29, 30, 31, 63, 64, 127, 128} {
		b.WriteString(strings.Repeat("LongWords", 15)[:size] + "\n")
	}
	fill(5000)
	b.WriteString(" " + strings.Repeat("TooLong", 19) + " ")
	fill(2*4096 - 6)
	b.WriteString("readBytesGoesOn ")
	fill(3*4096 + 10)
	b.WriteString(" two_\u212Aelvins ")
	fill(4*4096 - 3)
	b.WriteString("Next_is_not_opaque readBytes")
	return b.Bytes()
}

// goldenSums are names with checksums: data, apart from the lines at the end.
func goldenSums() []byte {
	var b bytes.Buffer
	for i := range 80 {
		fmt.Fprintf(&b, "name%d %x\n", i, sha256.Sum256([]byte{byte(i)}))
	}
	b.WriteString(strings.Repeat("name7 has another sum\n", 100))
	return b.Bytes()
}

// goldenSource returns lines of C, for several superblocks and a dictionary.
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
	"readbytes", "case:yes readBytes", "\\breadBytes\\b", "name1[0-9]5", "toolong", "case:yes TooLongTooLong", "two_kelvins", "case:yes kelvins",
	"goeson", "case:yes GoesOn", "next_is", "longwordslongwordslongwordslongwords", "name", "am", "sym:name", "name007", "name7", "case:yes \"name7 \"", "\"6e340b9cffb37a\"", "[0-9a-f]{64}", "\\b[A-Z]\\b", "readBytes goes or name29",
}

// goldenFolder has the committed shards. With -update, TestGoldenShards writes them.
var goldenFolder = fmt.Sprintf("../testdata/v%d", format.Version)

// TestGoldenShards opens the committed shards, as every later reader must. It verifies them to the
// last posting and compares their answers with brute force.
func TestGoldenShards(t *testing.T) {
	corpora := map[string]*indextest.Corpus{"fresh": golden(), "compact": golden(), "ranked": goldenRanks()}
	if testrun.Update() {
		writeGolden(t, corpora)
	}
	for name, c := range corpora {
		path := filepath.Join(goldenFolder, name+".trawl")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := format.NewFile(path, data); err != nil || f.Versions().Writer != format.Version {
			t.Errorf("%s is not of version %d: %v", path, format.Version, err)
		}
		checkGolden(t, path, data, c)
	}
}

func checkGolden(t *testing.T, path string, data []byte, c *indextest.Corpus) {
	t.Helper()
	s := openShard(t, data)
	if err := s.Verify(context.Background()); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	var queries []indextest.Query
	for i, text := range goldenQueries {
		queries = append(queries, indextest.Query{Text: text, Kind: path, Number: i})
	}
	indextest.Check(t, c, append(queries, indextest.Queries(c, 1, 300)...), engine(s))
}

func writeGolden(t *testing.T, corpora map[string]*indextest.Corpus) {
	t.Helper()
	if err := os.MkdirAll(goldenFolder, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, c := range corpora {
		effort := docstore.Fresh
		if name == "compact" {
			effort = docstore.Compact
		}
		data := buildShardWith(t, c, build.Options{Effort: effort})
		if err := os.WriteFile(filepath.Join(goldenFolder, name+".trawl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
