package shard

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestLongLines: with a limit, each line with a match is shown around its first match, and what is left out is counted.
func TestLongLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, spans := drawSpans(t)
		context, limit := rapid.IntRange(0, 3).Draw(t, "context"), rapid.IntRange(1, 30).Draw(t, "limit")
		ranges, next, end := 0, 0, uint32(0)
		for i, c := range new(shelf).appendChunks(nil, text, Location{Line: 1}, spans, context, limit) {
			lo, hi := c.Start.Offset, c.Start.Offset+uint32(len(c.Content))
			if c.Start != naiveLocation(text, lo) || !bytes.Equal(c.Content, text[lo:hi]) || len(c.Ranges) == 0 || i > 0 && lo < end {
				t.Fatalf("chunk %d: %+v", i, c)
			}
			end = hi
			for line := range bytes.Lines(c.Content) {
				if line = bytes.TrimSuffix(line, []byte{'\n'}); len(line) > max(limit, 12) { // a smaller limit may have to be exceeded for a whole rune
					t.Fatalf("chunk %d has a line of %d bytes, the limit is %d", i, len(line), limit)
				}
			}
			if c.CutBefore+c.CutAfter+c.CutRanges > 0 {
				from := bytes.LastIndexByte(text[:lo], '\n') + 1
				if c.CutBefore != int(lo)-from || c.CutAfter != max(lineEnd(text, from)-int(hi), 0) {
					t.Fatalf("chunk %d: %d and %d bytes are cut", i, c.CutBefore, c.CutAfter)
				}
			}
			for _, r := range c.Ranges {
				want := spans[next]
				if r.Start != naiveLocation(text, want.start) || r.End != naiveLocation(text, min(want.end, hi)) || r.End.Offset <= r.Start.Offset {
					t.Fatalf("range %d is %+v, want that of %+v in a chunk up to %d", next, r, want, hi)
				}
				next++
			}
			next += c.CutRanges
			ranges += len(c.Ranges) + c.CutRanges
		}
		if ranges != len(spans) {
			t.Fatalf("%d ranges, want %d", ranges, len(spans))
		}
	})
}
