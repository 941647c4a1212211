package shard

import (
	"bytes"
	"runtime"
	"slices"
	"testing"
	"unicode/utf8"
	"unsafe"

	"pgregory.net/rapid"
)

// drawSpans draws a text and ascending, non-overlapping, non-empty spans of it that begin and end
// at the borders of runes.
func drawSpans(t *rapid.T) (text []byte, spans []span) {
	runes := rapid.SliceOfN(rapid.SampledFrom([]rune("ab\n\né日")), 1, 60).Draw(t, "text")
	offset := func(runeIndex int) uint32 { return uint32(len(string(runes[:runeIndex]))) }
	for at := 0; ; {
		start := at + rapid.IntRange(0, 12).Draw(t, "gap")
		end := start + rapid.IntRange(1, 8).Draw(t, "length")
		if end > len(runes) {
			return []byte(string(runes)), spans
		}
		spans = append(spans, span{start: offset(start), end: offset(end)})
		at = end
	}
}

// naiveLocation counts lines and columns from the start of the text.
func naiveLocation(text []byte, off uint32) Location {
	before := text[:off]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return Location{Offset: off, Line: uint32(bytes.Count(before, []byte("\n"))) + 1, Column: uint32(utf8.RuneCount(line)) + 1}
}

func TestChunksHoldTheirRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, spans := drawSpans(t)
		context := rapid.IntRange(0, 3).Draw(t, "context")
		var ranges []Range
		end := uint32(0)
		for i, c := range new(shelf).appendChunks(nil, text, Location{Line: 1}, spans, context, 0) {
			lo, hi := c.Start.Offset, c.Start.Offset+uint32(len(c.Content))
			if c.Start != naiveLocation(text, lo) {
				t.Fatalf("chunk %d starts at %+v, want %+v", i, c.Start, naiveLocation(text, lo))
			}
			if c.Start.Column != 1 || !bytes.Equal(c.Content, text[lo:hi]) {
				t.Fatalf("chunk %d is not whole lines of the text", i)
			}
			if i > 0 && lo <= end {
				t.Fatalf("chunk %d starts at %d, the one before ends at %d", i, lo, end)
			}
			end = hi
			for _, r := range c.Ranges {
				if r.Start.Offset < lo || r.End.Offset > hi {
					t.Fatalf("range %+v is outside of its chunk [%d, %d)", r, lo, hi)
				}
			}
			ranges = append(ranges, c.Ranges...)
		}
		if len(ranges) != len(spans) {
			t.Fatalf("%d ranges in chunks, want %d", len(ranges), len(spans))
		}
		for i, r := range ranges {
			if r.Start != naiveLocation(text, spans[i].start) || r.End != naiveLocation(text, spans[i].end) {
				t.Fatalf("range %d is %+v, want that of %+v", i, r, spans[i])
			}
		}
	})
}

// lineBounds returns the bounds of each line of the text without its newline.
func lineBounds(text []byte) (bounds [][2]int) {
	at := 0
	for _, line := range bytes.SplitAfter(text, []byte("\n")) {
		end := at + len(bytes.TrimSuffix(line, []byte("\n")))
		bounds = append(bounds, [2]int{at, end})
		at += len(line)
	}
	return bounds
}

func TestContextIsCountedInLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, spans := drawSpans(t)
		if len(spans) == 0 {
			return
		}
		context := rapid.IntRange(0, 3).Draw(t, "context")
		chunk := new(shelf).appendChunks(nil, text, Location{Line: 1}, spans[:1], context, 0)[0]
		lo, hi := int(chunk.Start.Offset), int(chunk.Start.Offset)+len(chunk.Content)
		lines := lineBounds(text)
		first, last := 0, 0
		for i, l := range lines {
			if l[0] <= int(spans[0].start) {
				first = i
			}
			if l[0] <= int(spans[0].end)-1 {
				last = i
			}
		}
		wantLo := lines[max(0, first-context)][0]
		wantHi := max(int(spans[0].end), lines[min(len(lines)-1, last+context)][1])
		if lo != wantLo || hi != wantHi {
			t.Fatalf("lines around %+v in %q with %d lines of context = [%d, %d), want [%d, %d)", spans[0], text, context, lo, hi, wantLo, wantHi)
		}
	})
}

func TestSettleKeepsEarlierThenLonger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spans []span
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			start := rapid.Uint32Range(0, 20).Draw(t, "start")
			spans = append(spans, span{start: start, end: start + rapid.Uint32Range(1, 6).Draw(t, "len")})
		}
		all := append([]span(nil), spans...)
		kept := settle(spans)
		for i := 1; i < len(kept); i++ {
			if kept[i].start < kept[i-1].end {
				t.Fatalf("%v overlap", kept)
			}
		}
		for _, s := range all {
			covered := false
			for _, k := range kept {
				better := k.start < s.start || k.start == s.start && k.end >= s.end
				covered = covered || better && k.end > s.start
			}
			if !covered {
				t.Fatalf("%v was dropped from %v although nothing better overlaps it: %v", s, all, kept)
			}
		}
	})
}

// TestSettleContent: ranges in several lists are settled as if they were in one, and those that are
// not shown are counted.
func TestSettleContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g gathered
		var all []span
		for range rapid.IntRange(0, 5).Draw(t, "lists") {
			var l spanList
			for range rapid.IntRange(1, 12).Draw(t, "n") {
				start := l.end + rapid.OneOf(rapid.Uint32Range(0, 4), rapid.Uint32Range(0, 300)).Draw(t, "gap")
				s := span{start, start + rapid.OneOf(rapid.Uint32Range(1, 6), rapid.Uint32Range(1, 300)).Draw(t, "length")}
				l.add(s)
				all = append(all, s)
			}
			g.content = append(g.content, &l)
		}
		want := settle(all)
		total := len(want)
		limit := rapid.IntRange(0, 40).Draw(t, "limit")
		shown, count := g.settleContent(limit, func() bool { return true })
		if want = want[:min(len(want), limit)]; !slices.Equal(shown, want) {
			t.Fatalf("%v are shown, want %v", shown, want)
		}
		if count != total {
			t.Fatalf("%d are counted, want %d", count, total)
		}
	})
}

// TestShelfIsNotCopied measures what a result of a million ranges allocates: 1.05 times its size.
func TestShelfIsNotCopied(t *testing.T) {
	const files, each = 1000, 1000
	text := bytes.Repeat([]byte{'x'}, each)
	var spans []span
	for i := range uint32(each) {
		spans = append(spans, span{start: i, end: i + 1})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var s shelf
	for range files {
		s.appendChunks(nil, text, Location{Line: 1}, spans, 0, 0)
	}
	runtime.ReadMemStats(&after)
	const needed = files * (each*uint64(unsafe.Sizeof(Range{})) + each)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2*needed {
		t.Errorf("%d bytes allocated for a result of %d", allocated, needed)
	}
}
