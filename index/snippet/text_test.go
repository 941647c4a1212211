package snippet

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/docstore"
)

// memory is a text in memory. It counts the bytes that are read.
type memory struct {
	text []byte
	read int
}

func (m *memory) Append(dst []byte, off, n uint32) ([]byte, error) {
	m.read += int(n)
	return append(dst, m.text[off:off+n]...), nil
}

func (m *memory) LinesBefore(off uint32) (uint32, error) {
	return uint32(bytes.Count(m.text[:off], newline)), nil
}

const unbounded = 1 << 40

// chunksOf returns the chunks of a text whose start is in memory. It leaves the ranges as they are.
func chunksOf(text []byte, start int, ranges []Range, o Options) ([]Chunk, error) {
	t := Text{Reader: &memory{text: text}, Len: uint32(len(text)), Start: text[:start:start]}
	return t.Chunks(slices.Clone(ranges), new(Arena[byte]), o)
}

// drawRanges draws a text and ranges in it that begin and end at the borders of runes.
func drawRanges(t *rapid.T) (text []byte, ranges []Range) {
	runes := rapid.SliceOfN(rapid.SampledFrom([]rune("ab\n\né日")), 1, 60).Draw(t, "text")
	offset := func(runeIndex int) uint32 { return uint32(len(string(runes[:runeIndex]))) }
	for at := 0; ; {
		start := at + rapid.IntRange(0, 12).Draw(t, "gap")
		end := start + rapid.IntRange(1, 8).Draw(t, "length")
		if end > len(runes) {
			return []byte(string(runes)), ranges
		}
		ranges = append(ranges, Match(offset(start), offset(end)))
		at = end
	}
}

// drawLongText draws a text with lines longer than superblocks, and ranges in it that begin and end at the borders of runes.
func drawLongText(t *rapid.T) (text []byte, ranges []Range) {
	for range rapid.IntRange(1, 30).Draw(t, "lines") {
		n := rapid.OneOf(rapid.IntRange(0, 60), rapid.IntRange(0, 9000)).Draw(t, "length")
		text = append(append(text, strings.Repeat("é", n/2)...), "x\n"[:rapid.IntRange(1, 2).Draw(t, "end")]...)
	}
	for at := 0; at < len(text); {
		start := at + rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 20_000)).Draw(t, "gap")
		end := start + rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(1, 5000)).Draw(t, "size")
		start, end = RuneStart(text, start), RuneStart(text, end)
		if end > len(text) || start < at || start >= end {
			break
		}
		ranges = append(ranges, Match(uint32(start), uint32(end)))
		at = end
	}
	return text, ranges
}

// naiveLocation counts lines and columns from the start of the text.
func naiveLocation(text []byte, off uint32) Location {
	before := text[:off]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return Location{Offset: off, Line: uint32(bytes.Count(before, newline)) + 1, Column: uint32(utf8.RuneCount(line)) + 1}
}

// naiveChunks finds the chunks line by line in the whole text, without a limit on lines.
func naiveChunks(text []byte, ranges []Range, context int) (chunks []Chunk) {
	lines := lineBounds(text)
	lineOf := func(off uint32) int {
		return bytes.Count(text[:off], newline)
	}
	last := -1 // line of the last chunk
	for _, r := range ranges {
		from, to := max(lineOf(r.Start.Offset)-context, 0), min(lineOf(r.End.Offset-1)+context, len(lines)-1)
		lo, hi := lines[from][0], max(lines[to][1], int(r.End.Offset))
		if n := len(chunks); n > 0 && (from <= last || lo <= int(chunks[n-1].Start.Offset)+len(chunks[n-1].Content)) {
			lo, hi = int(chunks[n-1].Start.Offset), max(hi, int(chunks[n-1].Start.Offset)+len(chunks[n-1].Content))
		} else {
			chunks = append(chunks, Chunk{Start: naiveLocation(text, uint32(lo))})
		}
		last = max(last, to)
		c := &chunks[len(chunks)-1]
		c.Content = text[lo:hi]
		c.Ranges = append(c.Ranges, Range{Start: naiveLocation(text, r.Start.Offset), End: naiveLocation(text, r.End.Offset)})
	}
	return chunks
}

// lineBounds returns the bounds of each line of the text without its newline.
func lineBounds(text []byte) (bounds [][2]int) {
	at := 0
	for _, line := range bytes.SplitAfter(text, newline) {
		bounds = append(bounds, [2]int{at, at + len(bytes.TrimSuffix(line, newline))})
		at += len(line)
	}
	return bounds
}

// TestChunks: chunks are those that are found line by line in the whole text, whatever part of it is in memory. If they have no room,
// there are none.
func TestChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := drawRanges
		if rapid.Bool().Draw(t, "long") {
			draw = drawLongText
		}
		text, ranges := draw(t)
		o := Options{ContextLines: rapid.IntRange(0, 4).Draw(t, "context"), Room: unbounded}
		want, size := naiveChunks(text, ranges, o.ContextLines), 0
		for i := range want {
			size += want[i].Size()
		}
		if rapid.Bool().Draw(t, "bounded") {
			o.Room = int64(max(size+rapid.IntRange(-1, 1).Draw(t, "room"), 0))
		}
		got, err := chunksOf(text, rapid.IntRange(0, len(text)).Draw(t, "start"), ranges, o)
		if int64(size) > o.Room {
			if !errors.Is(err, ErrNoRoom) {
				t.Fatalf("%d chunks of %d bytes in %d, %v", len(got), size, o.Room, err)
			}
			return
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v: %d chunks, want %d\n got %.2000v\nwant %.2000v", err, len(got), len(want), got, want)
		}
	})
}

// TestLongLines: with a limit, each line with a match is shown around its first match, and what is left out is counted.
func TestLongLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, ranges := drawRanges(t)
		o := Options{ContextLines: rapid.IntRange(0, 3).Draw(t, "context"), MaxLine: rapid.IntRange(1, 30).Draw(t, "limit"), Room: unbounded}
		chunks, err := chunksOf(text, rapid.IntRange(0, len(text)).Draw(t, "start"), ranges, o)
		if err != nil {
			t.Fatal(err)
		}
		shown, next, end := 0, 0, uint32(0)
		for i, c := range chunks {
			lo, hi := c.Start.Offset, c.Start.Offset+uint32(len(c.Content))
			if c.Start != naiveLocation(text, lo) || !bytes.Equal(c.Content, text[lo:hi]) || len(c.Ranges) == 0 || i > 0 && lo < end {
				t.Fatalf("chunk %d: %+v", i, c)
			}
			end = hi
			for line := range bytes.Lines(c.Content) {
				if line = bytes.TrimSuffix(line, newline); len(line) > max(o.MaxLine, 12) { // a smaller limit may have to be exceeded for a whole rune
					t.Fatalf("chunk %d has a line of %d bytes, the limit is %d", i, len(line), o.MaxLine)
				}
			}
			if c.CutBefore+c.CutAfter+c.CutRanges > 0 {
				from := bytes.LastIndexByte(text[:lo], '\n') + 1
				if c.CutBefore != int(lo)-from || c.CutAfter != max(from+lineLength(text[from:])-int(hi), 0) {
					t.Fatalf("chunk %d: %d and %d bytes are cut", i, c.CutBefore, c.CutAfter)
				}
			}
			for _, r := range c.Ranges {
				start, end := ranges[next].Start.Offset, ranges[next].End.Offset
				if r.Start != naiveLocation(text, start) || r.End != naiveLocation(text, min(end, hi)) || r.End.Offset <= r.Start.Offset {
					t.Fatalf("range %d is %+v, want [%d, %d) in a chunk up to %d", next, r, start, end, hi)
				}
				next++
			}
			next += c.CutRanges
			shown += len(c.Ranges) + c.CutRanges
		}
		if shown != len(ranges) {
			t.Fatalf("%d ranges, want %d", shown, len(ranges))
		}
	})
}

// TestOnlyWhatIsShownIsRead: of a large text, little more is read than is shown, and of a line that has no room no more than the room.
func TestOnlyWhatIsShownIsRead(t *testing.T) {
	lines := bytes.Repeat([]byte("a line of a table\n"), 100_000)
	m := &memory{text: lines}
	text := Text{Reader: m, Len: uint32(len(lines))}
	if _, err := text.Chunks([]Range{Match(5, 6), Match(900_000, 900_010), Match(1_700_000, 1_700_001)}, new(Arena[byte]), Options{ContextLines: 2, Room: unbounded}); err != nil || m.read > 6*docstore.SuperblockSize {
		t.Errorf("%d bytes read, %v", m.read, err)
	}
	m = &memory{text: bytes.Repeat([]byte{'x'}, 2<<20)}
	for _, at := range []uint32{10, 1 << 20} {
		text = Text{Reader: m, Len: 2 << 20}
		if _, err := text.Chunks([]Range{Match(at, at+1)}, new(Arena[byte]), Options{Room: 100_000}); !errors.Is(err, ErrNoRoom) || m.read > 100_000+2*longStep {
			t.Errorf("%d bytes read, %v", m.read, err)
		}
	}
}

// TestResultsAreNotCopied measures what a result of a million ranges allocates: 1.05 times its size.
func TestResultsAreNotCopied(t *testing.T) {
	const files, each = 1000, 1000
	content := bytes.Repeat([]byte{'x'}, each)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var contents Arena[byte]
	var arena Arena[Range]
	for range files {
		ranges := arena.Take(each)
		for i := range uint32(each) {
			ranges[i] = Match(i, i+1)
		}
		text := Text{Reader: &memory{text: content}, Len: each, Start: content}
		if _, err := text.Chunks(ranges, &contents, Options{Room: unbounded}); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	const needed = files * (each*uint64(unsafe.Sizeof(Range{})) + each)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2*needed {
		t.Errorf("%d bytes allocated for a result of %d", allocated, needed)
	}
}

func TestRuneStart(t *testing.T) {
	text := "aé日\xa9\xa9\xa9\xa9\xa9"
	for i, want := range []int{0, 1, 1, 3, 3, 3, 3, 4, 5, 6, 7, 11} {
		if got := RuneStart(text, i); got != want || got != RuneStart([]byte(text), i) {
			t.Errorf("RuneStart(%d) = %d, want %d", i, got, want)
		}
	}
}
