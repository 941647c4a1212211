package search_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/index/symbols"
)

// hostileSymbols has files with many definitions, in one line or in many, and with names of
// arbitrary bytes.
func hostileSymbols(t *testing.T) *search.Shard {
	t.Helper()
	repo := indextest.Repo{Name: "example.com/hostile", Branches: []string{"main"}}
	add := func(path, language string, content []byte) {
		repo.Documents = append(repo.Documents, indextest.Document{Path: path, Content: content, Branches: []string{"main"}, Language: language})
	}
	add("line.js", "JavaScript", []byte(strings.Repeat("function fish(){fish()};", (2<<20)/24)))
	var many bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&many, "func fish%d() {}\n", i)
	}
	add("many.go", "Go", many.Bytes())
	add("large.go", "Go", append([]byte("func fish() {}\n"), bytes.Repeat([]byte("// \n"), 1<<20)...))
	add("control.kt", "Kotlin", []byte("fun `fish\x1b[2J\x07 b`() { }\n"))
	add("bytes.js", "JavaScript", []byte("function fish\xff\xfe() { fish }\n"))
	add("long.js", "JavaScript", []byte("function "+strings.Repeat("fish", 10_000)+"() { }\n"))
	add("plain.txt", "Text", []byte("fish\n"))
	return openShard(t, buildShard(t, &indextest.Corpus{Name: "hostile", Repos: []indextest.Repo{repo}}))
}

// TestSymbolsOfHostileFiles: the symbols of matches in hostile files are reported as far as
// there is room.
func TestSymbolsOfHostileFiles(t *testing.T) {
	s := hostileSymbols(t)
	res := run(t, s, prepareOwn(t, "case:yes fish"), search.Options{MaxFiles: 100, MaxMatchesPerFile: 200_000, Symbols: true})
	named := map[string]int{}
	for i := range res.Files {
		f := &res.Files[i]
		size := 0
		for _, symbol := range f.Symbols {
			if !utf8.ValidString(symbol.Name) || len(symbol.Name) > 3*256 || symbol.Kind == 0 {
				t.Errorf("%s: symbol %+v", f.Path, symbol)
			}
			size += len(symbol.Name) + len(symbol.Scope)
		}
		if size > 256<<10 {
			t.Errorf("%s: symbols take %d bytes", f.Path, size)
		}
		for _, c := range f.Chunks {
			for _, r := range c.Ranges {
				if r.Symbol > len(f.Symbols) || r.Definition && r.Symbol == 0 {
					t.Fatalf("%s: %+v of %d symbols", f.Path, r, len(f.Symbols))
				}
				if r.Symbol > 0 {
					named[string(f.Path)]++
				}
			}
		}
	}
	if len(res.Files) != 7 || named["line.js"] < 10_000 || named["many.go"] < 5_000 || named["large.go"] != 0 || named["plain.txt"] != 0 ||
		named["control.kt"] != 1 || named["bytes.js"] != 2 || named["long.js"] == 0 {
		t.Errorf("%d files, matches in symbols: %v", len(res.Files), named)
	}
}

// TestSymbolsTakeRoom checks that symbols count towards the limit of an answer.
func TestSymbolsTakeRoom(t *testing.T) {
	s := openShard(t, buildShard(t, symbolCorpus(t)))
	ready := prepareOwn(t, "sym:search")
	opts := search.Options{MaxFiles: 1000, MaxMatchesPerFile: 1000, Symbols: true}
	whole := run(t, s, ready, opts)
	size := int64(0)
	for i := range whole.Files {
		size += whole.Files[i].Size()
	}
	opts.MaxBytes = size
	if got := run(t, s, ready, opts); !sameFiles(got.Files, whole.Files) || got.Cut {
		t.Errorf("%d of %d files have room", len(got.Files), len(whole.Files))
	}
	opts.MaxBytes = size - 1
	if got := run(t, s, ready, opts); len(got.Files) != len(whole.Files)-1 || !got.Cut {
		t.Errorf("%d of %d files have room in a byte less", len(got.Files), len(whole.Files))
	}
	if f := whole.Files[0]; f.Chunks[0].Ranges[0].Symbol == 0 || !f.Chunks[0].Ranges[0].Definition || f.Symbols[0].Kind < symbols.Function {
		t.Errorf("%+v", f)
	}
}
