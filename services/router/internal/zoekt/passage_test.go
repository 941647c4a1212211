package zoekt

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// The oracle here looks at the whole text of a file, line by line. What is
// shown is made from a passage alone, as searchers send it.

type textLine struct{ start, end int } // end is behind the newline

func linesOf(text string) (lines []textLine) {
	start := 0
	for l := range strings.SplitAfterSeq(text, "\n") {
		if len(l) > 0 {
			lines = append(lines, textLine{start, start + len(l)})
		}
		start += len(l)
	}
	return lines
}

func at(text string, off int) *searchv1.Location {
	return &searchv1.Location{
		ByteOffset: uint32(off), LineNumber: uint32(strings.Count(text[:off], "\n") + 1),
		Column: uint32(len([]rune(text[strings.LastIndexByte(text[:off], '\n')+1:off])) + 1),
	}
}

type pair struct{ from, to int }

// drawMatches draws ranges that ascend and do not overlap.
func drawMatches(t *rapid.T, text string) (pairs []pair) {
	for from := 0; from < len(text); {
		from += rapid.IntRange(0, 12).Draw(t, "gap")
		to := from + rapid.IntRange(1, 5).Draw(t, "length")
		if to > len(text) {
			break
		}
		pairs = append(pairs, pair{from, to})
		from = to
	}
	return pairs
}

// send makes the chunks that a searcher sends of the matches.
func send(text string, pairs []pair, context int) *searchv1.FileMatch {
	lines := linesOf(text)
	f := &searchv1.FileMatch{Repo: "host/repo", Path: []byte("file"), MatchCount: uint64(len(pairs))}
	var c *searchv1.ChunkMatch
	end := 0 // first line behind the chunk
	for _, p := range pairs {
		first, last := lineIndex(lines, p.from), lineIndex(lines, p.to-1)
		if c == nil || first-context >= end {
			from := lines[max(first-context, 0)].start
			c = &searchv1.ChunkMatch{ContentStart: at(text, from)}
			f.Chunks = append(f.Chunks, c)
		}
		c.Ranges = append(c.Ranges, &searchv1.Range{Start: at(text, p.from), End: at(text, p.to)})
		end = max(end, min(last+context+1, len(lines)))
		stop := lines[end-1].end
		content := text[c.ContentStart.ByteOffset:stop]
		// The last newline is left out, unless the match holds it or the text ends there.
		if stop != p.to && end == last+context+1 && content[len(content)-1] == '\n' {
			content = content[:len(content)-1]
		}
		c.Content = []byte(content)
	}
	return f
}

func lineIndex(lines []textLine, off int) int {
	return slices.IndexFunc(lines, func(l textLine) bool { return off < l.end })
}

func drawText(t *rapid.T) string {
	return rapid.StringOfN(rapid.SampledFrom([]rune("ab é\n\n")), 1, 80, -1).Draw(t, "text")
}

// TestLinesShowTheFile: lines, their context and their fragments are those of
// the file, each line once, and each byte of a match but newlines is shown once.
func TestLinesShowTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		pairs := drawMatches(t, text)
		o := searchOptions{NumContextLines: rapid.IntRange(0, 3).Draw(t, "context")}
		got, n := o.lines(send(text, pairs, o.context()+1), 0)
		if len(pairs) == 0 {
			return
		}
		lines, shown, fragments, before := linesOf(text), map[int]bool{}, 0, -1
		for _, m := range got {
			i := m.LineNumber - 1
			if i <= before {
				t.Fatalf("line %d after line %d", i, before)
			}
			before = i
			l := lines[i]
			if m.LineStart != l.start || m.LineEnd != l.end || string(m.Line) != text[l.start:l.end] {
				t.Fatalf("line %d is %q at [%d, %d), shown %q at [%d, %d)", i, text[l.start:l.end], l.start, l.end, m.Line, m.LineStart, m.LineEnd)
			}
			if o.NumContextLines > 0 {
				lo, hi := lines[max(i-o.NumContextLines, 0)].start, lines[min(i+o.NumContextLines, len(lines)-1)].end
				if string(m.Before)+string(m.Line)+string(m.After) != text[lo:hi] {
					t.Fatalf("line %d with context is %q, shown %q, %q, %q", i, text[lo:hi], m.Before, m.Line, m.After)
				}
			}
			if len(m.LineFragments) == 0 {
				t.Fatalf("line %d without a fragment", i)
			}
			for _, f := range m.LineFragments {
				fragments++
				if int(f.Offset) != l.start+f.LineOffset || f.MatchLength == 0 {
					t.Fatalf("fragment %+v of a line at %d", f, l.start)
				}
				for b := range f.MatchLength {
					if shown[int(f.Offset)+b] {
						t.Fatalf("byte %d twice", int(f.Offset)+b)
					}
					shown[int(f.Offset)+b] = true
				}
			}
		}
		if fragments != n {
			t.Fatalf("%d fragments are counted as %d", fragments, n)
		}
		for _, p := range pairs {
			for b := p.from; b < p.to; b++ {
				if shown[b] != (text[b] != '\n') {
					t.Fatalf("byte %d of a match, %q: shown is %t", b, text[b], shown[b])
				}
				delete(shown, b)
			}
		}
		if len(shown) > 0 {
			t.Fatalf("shown and no match: %v", shown)
		}
	})
}

// TestChunksShowTheFile: chunks are whole lines with their context, do not
// overlap, and name each match once, where it is.
func TestChunksShowTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		pairs := drawMatches(t, text)
		o := searchOptions{ChunkMatches: true, NumContextLines: rapid.IntRange(0, 3).Draw(t, "context")}
		got, _ := o.chunks(send(text, pairs, o.context()+1), 0)
		if len(pairs) == 0 {
			return
		}
		lines, end := linesOf(text), 0
		var named []pair
		for _, c := range got {
			from := int(c.ContentStart.ByteOffset)
			first := lineIndex(lines, int(c.Ranges[0].Start.ByteOffset))
			last := lineIndex(lines, int(c.Ranges[len(c.Ranges)-1].End.ByteOffset)-1)
			lo, hi := lines[max(first-o.NumContextLines, 0)], lines[min(last+o.NumContextLines, len(lines)-1)]
			if string(c.Content) != text[lo.start:hi.end] || from != lo.start || c.ContentStart.Column != 1 || int(c.BestLineMatch) != first+1 {
				t.Fatalf("chunk %q at %+v, best line %d; the lines are %q at %d", c.Content, c.ContentStart, c.BestLineMatch, text[lo.start:hi.end], lo.start)
			}
			if from < end {
				t.Fatalf("a chunk from %d overlaps one that ends at %d", from, end)
			}
			end = from + len(c.Content)
			for _, r := range c.Ranges {
				named = append(named, pair{int(r.Start.ByteOffset), int(r.End.ByteOffset)})
				checkEnds(t, text, r)
			}
		}
		if !slices.Equal(named, pairs) {
			t.Fatalf("named %v, sent %v", named, pairs)
		}
	})
}

// checkEnds: an end is in the line of the last byte.
func checkEnds(t *rapid.T, text string, r textRange) {
	t.Helper()
	if want := place(at(text, int(r.Start.ByteOffset))); r.Start != want {
		t.Fatalf("start %+v, want %+v", r.Start, want)
	}
	if last := place(at(text, int(r.End.ByteOffset)-1)); r.End.LineNumber != last.LineNumber || r.End.Column < last.Column {
		t.Fatalf("end %+v, its last byte is at %+v", r.End, last)
	}
}

// TestLimitsCutBoth: with a limit of matches, the result is the beginning of that without a limit.
func TestLimitsCutBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		pairs := drawMatches(t, text)
		if len(pairs) == 0 {
			return
		}
		limit := rapid.IntRange(1, len(pairs)).Draw(t, "limit")
		var o searchOptions
		f := send(text, pairs, 1)
		chunks, n := o.chunks(f, limit)
		if n != limit {
			t.Fatalf("%d ranges with a limit of %d", n, limit)
		}
		var all []uint32
		for _, c := range chunks {
			for _, r := range c.Ranges {
				all = append(all, r.Start.ByteOffset)
			}
		}
		for i, off := range all {
			if int(off) != pairs[i].from {
				t.Fatalf("range %d is at %d, want %d", i, off, pairs[i].from)
			}
		}
		whole, most := o.lines(f, 0)
		cut, n := o.lines(f, limit)
		if len(cut) > 0 && len(cut[len(cut)-1].LineFragments) == 0 {
			t.Fatalf("a line without fragments after the limit of %d", limit)
		}
		if n != min(limit, most) || len(cut) > len(whole) {
			t.Fatalf("%d fragments of %d with a limit of %d", n, most, limit)
		}
	})
}

// TestStrayRangesAreNotShown: ranges that no searcher should send do no harm.
func TestStrayRangesAreNotShown(t *testing.T) {
	r := func(from, to uint32) *searchv1.Range {
		return &searchv1.Range{Start: &searchv1.Location{ByteOffset: from}, End: &searchv1.Location{ByteOffset: to}}
	}
	f := &searchv1.FileMatch{MatchCount: 9, Chunks: []*searchv1.ChunkMatch{{
		Content: []byte("ab\ncd"), ContentStart: &searchv1.Location{ByteOffset: 10, LineNumber: 3, Column: 1},
		Ranges: []*searchv1.Range{r(0, 5), r(9, 11), r(12, 12), r(14, 12), r(14, 40), nil, r(13, 15)},
	}, {}}}
	var o searchOptions
	lines, _ := o.lines(f, 0)
	if len(lines) != 1 || string(lines[0].Line) != "cd" || lines[0].LineNumber != 4 || lines[0].LineStart != 13 {
		t.Errorf("lines %+v", lines)
	}
	chunks, _ := o.chunks(f, 0)
	if len(chunks) != 1 || string(chunks[0].Content) != "cd" {
		t.Errorf("chunks %+v", chunks)
	}
}
