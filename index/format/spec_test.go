package format_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
)

var le = binary.LittleEndian

// spec is FORMAT.md: its tables of cells, by heading.
type spec map[string][][]string

// readSpec reads all tables. If a heading has several, "heading 2" is the
// second one.
func readSpec(t *testing.T) spec {
	t.Helper()
	text, err := os.ReadFile("../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	s, heading, tables, inTable := spec{}, "", 0, false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		switch {
		case strings.HasPrefix(line, "#"):
			heading, tables = strings.TrimLeft(line, "# "), 0
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case !inTable: // the line of titles
			inTable = true
			if tables++; tables > 1 {
				heading = strings.TrimSuffix(heading, " "+strconv.Itoa(tables-1)) + " " + strconv.Itoa(tables)
			}
		case !strings.HasPrefix(line, "|--"):
			s[heading] = append(s[heading], cells)
		}
	}
	return s
}

// rows returns a table, which must exist.
func (s spec) rows(t *testing.T, heading string) [][]string {
	t.Helper()
	if len(s[heading]) == 0 {
		t.Fatalf("FORMAT.md has no table under %q", heading)
	}
	return s[heading]
}

var charType = regexp.MustCompile(`^char\[(\d+)\]$`)

// width returns the width of a type in bytes; 0 if it has none.
func width(kind string) int {
	if m := charType.FindStringSubmatch(kind); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return map[string]int{"u8": 1, "u16": 2, "u32": 4, "u64": 8}[kind]
}

func atoi(t *testing.T, digits string) int {
	t.Helper()
	n, err := strconv.Atoi(digits)
	must(t, err)
	return n
}

// fixed decodes fields at fixed offsets: numbers by their names, and the bytes
// of char fields. The offsets must be without gaps and cover the data.
func (s spec) fixed(t *testing.T, heading string, data []byte) (map[string]uint64, map[string]string) {
	t.Helper()
	numbers, chars, next := map[string]uint64{}, map[string]string{}, 0
	for _, row := range s.rows(t, heading) {
		if at, err := strconv.Atoi(row[0]); err != nil || at != next {
			t.Fatalf("%s: field %s is at %s, not %d", heading, row[2], row[0], next)
		}
		size := width(row[1])
		if size == 0 || next+size > len(data) {
			t.Fatalf("%s: field %s of type %q at %d of %d", heading, row[2], row[1], next, len(data))
		}
		field := data[next : next+size]
		if strings.HasPrefix(row[1], "char") {
			chars[row[2]] = string(field)
			if chars[row[2]] != strings.Trim(row[3], "`") {
				t.Errorf("%s: %s is %q, FORMAT.md says %s", heading, row[2], field, row[3])
			}
		} else {
			numbers[row[2]] = le.Uint64(append(bytes.Clone(field), make([]byte, 8)...))
		}
		next += size
	}
	if next != len(data) {
		t.Errorf("%s: FORMAT.md has %d bytes, there are %d", heading, next, len(data))
	}
	return numbers, chars
}

func crc(p []byte) uint64 { return uint64(crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli))) }

func TestSpecOfFrame(t *testing.T) {
	s, data := readSpec(t), sample(t).data
	f, err := format.NewFile("test", data)
	if err != nil {
		t.Fatal(err)
	}
	header, magic := s.fixed(t, "Header", data[:format.HeaderSize])
	if magic["header magic"] != format.HeaderMagic || header["writer version"] != uint64(format.Version) ||
		header["min reader version"] != uint64(format.Version) {
		t.Errorf("header %v", header)
	}
	footer, magic := s.fixed(t, "Footer", data[len(data)-format.FooterSize:])
	body := data[:footer["body length"]]
	sums := data[len(body):footer["contents offset"]]
	toc := data[footer["contents offset"]:][:footer["contents length"]]
	want := map[string]uint64{
		"size": uint64(len(data)), "body length": uint64(len(body)), "contents offset": uint64(len(body) + len(sums)),
		"contents length": uint64(len(f.Sections()) * format.EntrySize), "contents crc": crc(toc), "checksums crc": crc(sums),
		"checksum block": format.ChecksumBlock, "writer version": header["writer version"],
		"min reader version": header["min reader version"], "footer crc": crc(data[len(data)-format.FooterSize:][:52]), "reserved": 0,
	}
	compare(t, "footer", footer, want)
	if magic["footer magic"] != format.FooterMagic {
		t.Errorf("footer %v", magic)
	}
	for block := range slices.Chunk(body, format.ChecksumBlock) {
		if uint64(le.Uint32(sums)) != crc(block) {
			t.Error("a checksum is not that of its block")
		}
		sums = sums[format.ChecksumSize:]
	}
	for i, info := range f.Sections() {
		entry, _ := s.fixed(t, "Entry of the table of contents", toc[i*format.EntrySize:][:format.EntrySize])
		compare(t, info.Tag.String(), entry, map[string]uint64{
			"tag": uint64(info.Tag), "flags": uint64(flagsOf(info.Tag)), "offset": uint64(info.Offset), "length": uint64(info.Length),
			"crc": crc(body[info.Offset:][:info.Length]), "reserved": 0,
		})
	}
}

// flagsOf returns the flags of a section according to section 3.
func flagsOf(tag format.Tag) format.Flags {
	if name := tag.String(); name == "WDEF" || name == "RANK" {
		return format.Optional
	}
	return format.Required
}

func compare(t *testing.T, what string, got, want map[string]uint64) {
	t.Helper()
	for name, n := range got {
		if w, ok := want[name]; !ok || w != n {
			t.Errorf("%s: field %q is %d, want %d", what, name, n, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d fields, want %d", what, len(got), len(want))
	}
}

func TestSpecOfSections(t *testing.T) {
	s := readSpec(t)
	var inSpec, inCode, inShard []string
	for _, row := range s.rows(t, "3. Sections") {
		inSpec = append(inSpec, row[0])
	}
	for _, tag := range format.Tags() {
		inCode = append(inCode, tag.String())
	}
	for tag := range sample(t).sections {
		inShard = append(inShard, tag)
	}
	if !slices.Equal(inSpec, inCode) {
		t.Errorf("FORMAT.md has the sections\n%v\nthe code\n%v", inSpec, inCode)
	}
	slices.Sort(inSpec)
	slices.Sort(inShard)
	if !slices.Equal(inSpec, inShard) {
		t.Errorf("FORMAT.md has the sections\n%v\na shard\n%v", inSpec, inShard)
	}
}

func TestSpecOfConstants(t *testing.T) {
	s := readSpec(t)
	for _, c := range []struct {
		heading string
		column  int
		want    []uint64
	}{
		{"Limits", 1, []uint64{format.MaxSections, eliasfano.MaxLen, docstore.MaxPath, docstore.SuperblockSize, docstore.MaxDictionary, docstore.BlockSize, ngram.MaxWord, inverted.MaxCount}},
	} {
		rows := s.rows(t, c.heading)
		for i, want := range c.want {
			if i >= len(rows) || rows[i][c.column] != strconv.FormatUint(want, 10) {
				t.Errorf("%s: row %d is not %d: %v", c.heading, i, want, rows)
			}
		}
		if len(rows) != len(c.want) {
			t.Errorf("%s: %d rows, want %d", c.heading, len(rows), len(c.want))
		}
	}
	for i, row := range s.rows(t, "Arrays of documents 2") {
		if reason := docstore.SkipReason(i + 1); row[0] != strconv.Itoa(i+1) || row[1] != reason.String() {
			t.Errorf("reason %v is %s", row, reason)
		}
	}
	if docstore.SuperblockSize != ngram.SuperblockSize || docstore.BlockSize != ngram.BlockSize {
		t.Error("docstore and ngram cut text in different ways")
	}
	if last := s.rows(t, "N-grams 2")[4][0]; last != "up to "+strconv.Itoa(ngram.Space) {
		t.Errorf("n-grams end %s, in the code at %d", last, ngram.Space)
	}
}
