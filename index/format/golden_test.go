package format_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestGoldenShardsAnnotated compares the committed shards with their annotations, which the tables
// of FORMAT.md produce. Neither may change once the version of the format is released. The test of
// golden shards in package shard writes and searches them.
func TestGoldenShardsAnnotated(t *testing.T) {
	folder := fmt.Sprintf("../testdata/v%d", format.Version)
	paths, err := filepath.Glob(folder + "/*.trawl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden shards in %s: %v", folder, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		must(t, err)
		a := annotator{spec: readSpec(t), t: t, data: data}
		got, text := a.shard(), strings.TrimSuffix(path, "trawl")+"txt"
		testrun.Golden(t, text, []byte(got)) // as FORMAT.md says of the shard
	}
}

// annotator prints every byte of a shard, with its meaning.
type annotator struct {
	spec
	t    *testing.T
	data []byte
	out  strings.Builder
}

func (a *annotator) shard() string {
	f, err := format.NewFile("golden", a.data)
	must(a.t, err)
	a.title("header")
	a.fields("Header", 0)
	for _, info := range f.Sections() {
		a.section(info)
	}
	footer := len(a.data) - format.FooterSize
	body, contents := int(le.Uint64(a.data[footer+8:])), int(le.Uint64(a.data[footer+16:]))
	a.title("checksums of the body")
	a.bytes(body, contents)
	for at, i := contents, 0; at < footer; at, i = at+format.EntrySize, i+1 {
		a.title("entry of " + f.Sections()[i].Tag.String())
		a.fields("Entry of the table of contents", at)
	}
	a.title("footer")
	a.fields("Footer", footer)
	return a.out.String()
}

func (a *annotator) title(what string) { fmt.Fprintf(&a.out, "\n%s\n", what) }

// section prints fields if FORMAT.md has a table for them, and the numbers of a list after its
// bytes.
func (a *annotator) section(info format.SectionInfo) {
	tag, at, end := info.Tag.String(), int(info.Offset), int(info.Offset+info.Length)
	a.title(fmt.Sprintf("section %s: %s", tag, a.cell("3. Sections", tag, 1)))
	switch {
	case tag == "UNIT", tag == "NAME":
		at = a.fields("Header of UNIT and NAME", at)
	case tag == "CINF", tag == "DINF", tag == "WINF":
		at = a.fields(tag, at)
	case tag == "WLEX":
		at = a.lexicon(at, end)
	case tag == "WPRT":
		at = a.parts(at, end)
	case a.cell("Lists of content", tag, 0) != "", a.cell("Lists of documents", tag, 0) != "", a.cell("Lists of words", tag, 0) != "":
		values, universe, _ := readList(a.t, a.data[at:end])
		defer fmt.Fprintf(&a.out, "          %d below %d: %v\n", len(values), universe, values)
	}
	a.bytes(at, end)
}

// parts prints the entries of WPRT.
func (a *annotator) parts(at, end int) int {
	for ; at < end; at += 20 {
		a.bytes(at, at+20)
		lists := le.Uint32(a.data[at+16:])
		fmt.Fprintf(&a.out, "          part %s: lists from %d on, ends %t, insides %t\n", strings.TrimRight(string(a.data[at:at+16]), "\x00"), lists>>2, lists&1 != 0, lists&2 != 0)
	}
	return at
}

// lexicon prints the blocks of WLEX, each followed by its words.
func (a *annotator) lexicon(at, end int) int {
	f, err := format.NewFile("golden", a.data)
	must(a.t, err)
	bytesOf := func(tag format.Tag) []byte {
		section, _ := f.Section(tag)
		data, err := section.All()
		must(a.t, err)
		return data
	}
	words := int(le.Uint32(bytesOf(format.TagWordTable)) - le.Uint32(bytesOf(format.TagWordInfo)[4:])) // without the lists of parts
	ends, _, _ := readList(a.t, bytesOf(format.TagLexiconOffsets))
	for i, blockEnd := range ends {
		from, to, n := at, end-len(bytesOf(format.TagLexicon))+int(blockEnd), min(words-32*i, 32)
		a.bytes(from, to)
		fmt.Fprintf(&a.out, "          words from %d on: %s\n", 32*i, strings.Join(decodeWords(a.t, a.data[from:to], n, map[string]int{}), " "))
		at = to
	}
	return at
}

// cell returns a cell of the row that begins with key; "" if there is none.
func (a *annotator) cell(heading, key string, column int) string {
	for _, row := range a.spec[heading] {
		if row[0] == key {
			return row[column]
		}
	}
	return ""
}

// fields prints the fields of a table with fixed offsets, and returns where they end.
func (a *annotator) fields(heading string, base int) (end int) {
	rows := a.rows(a.t, heading)
	last := rows[len(rows)-1]
	end = base + atoi(a.t, last[0]) + width(last[1])
	for _, row := range rows {
		at := base + atoi(a.t, row[0])
		field := a.data[at : at+width(row[1])]
		number := ""
		if strings.HasPrefix(row[1], "u") {
			number = fmt.Sprintf(" = %d", le.Uint64(append(bytes.Clone(field), make([]byte, 8)...)))
		}
		fmt.Fprintf(&a.out, "%08x  %-23s  %s%s: %s\n", at, fmt.Sprintf("% x", field), row[2], number, row[3])
	}
	return end
}

// bytes prints sixteen bytes per line, followed by their characters.
func (a *annotator) bytes(at, end int) {
	for ; at < end; at += 16 {
		line := a.data[at:min(at+16, end)]
		chars := strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '.'
			}
			return r
		}, latin1(line))
		fmt.Fprintf(&a.out, "%08x  %-47s  |%s|\n", at, fmt.Sprintf("% x", line), chars)
	}
}

// latin1 makes one rune of each byte.
func latin1(p []byte) string {
	runes := make([]rune, len(p))
	for i, b := range p {
		runes[i] = rune(b)
	}
	return string(runes)
}
