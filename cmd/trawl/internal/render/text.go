package render

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trawl-search/trawl/index/snippet"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Text prints results for people. It is for one goroutine.
type Text struct {
	// Link of paths and numbers of lines, set before the first file.
	Link Link

	w     io.Writer
	color bool
	gaps  bool
	files int
}

// NewText returns a printer to w, with SGR colours if color is set. With gaps
// it marks where lines of a file are left out, which reads well when matches
// are shown with lines around them.
func NewText(w io.Writer, color, gaps bool) *Text {
	return &Text{w: w, color: color, gaps: gaps}
}

// File prints one file: a heading, then its lines with line numbers and
// highlighted matches. The error is the writer's.
func (t *Text) File(f *searchv1.FileMatch) error {
	var b strings.Builder
	if t.files++; t.files > 1 {
		b.WriteByte('\n')
	}
	t.heading(&b, f)
	last := uint32(0)
	for _, c := range f.GetChunks() {
		if c.GetFileName() {
			continue
		}
		if start := c.GetContentStart().GetLineNumber(); t.gaps && last != 0 && start > last+1 {
			paint(&b, t.color, styleNote, []byte("   ⋮"))
			b.WriteByte('\n')
		}
		last = t.chunk(&b, f, c)
	}
	if hidden := f.GetMatchCount() - shownMatches(f); hidden > 0 && f.GetMatchCount() > 0 {
		paint(&b, t.color, styleNote, fmt.Appendf(nil, "   … and %d more", hidden))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

// heading prints repo, path (with the matches in it), branches and, if content is missing, the
// reason.
func (t *Text) heading(b *strings.Builder, f *searchv1.FileMatch) {
	paint(b, t.color, styleRepo, []byte(f.GetRepo()))
	b.WriteByte(' ')
	t.Link.linked(b, f, 0, func(b *strings.Builder) { t.highlight(b, stylePath, f.GetPath(), 0, pathRanges(f)) })
	var notes []string
	if len(f.GetBranches()) > 0 {
		notes = append(notes, strings.Join(f.GetBranches(), ", "))
	}
	if f.GetSkipReason() != searchv1.SkipReason_SKIP_REASON_UNSPECIFIED {
		notes = append(notes, "found by name only: "+searchapi.SkipReason(f.GetSkipReason()))
	}
	if len(f.GetMissingWords()) > 0 {
		notes = append(notes, "without "+strings.Join(f.GetMissingWords(), " "))
	}
	if len(notes) > 0 {
		b.WriteByte(' ')
		paint(b, t.color, styleNote, []byte("("+strings.Join(notes, "; ")+")"))
	}
	b.WriteByte('\n')
	if f.GetExplanation() != "" {
		paint(b, t.color, styleNote, fmt.Appendf(nil, "   score %g: %s", f.GetScore(), f.GetExplanation()))
		b.WriteByte('\n')
	}
}

// chunk prints the lines of a chunk and returns the number of the last.
func (t *Text) chunk(b *strings.Builder, f *searchv1.FileMatch, c *searchv1.ChunkMatch) (last uint32) {
	offset := int(c.GetContentStart().GetByteOffset())
	for _, line := range linesOf(c, true) {
		digits := strconv.FormatUint(uint64(line.number), 10)
		b.WriteString(strings.Repeat(" ", max(6-len(digits), 0)))
		t.Link.linked(b, f, line.number, func(b *strings.Builder) { paint(b, t.color, styleLine, []byte(digits)) })
		b.WriteString("  ")
		t.line(b, bytes.TrimSuffix(line.text, []byte("\r")), offset, c.GetRanges())
		t.symbol(b, f, symbolIn(c.GetRanges(), offset, offset+len(line.text)))
		b.WriteByte('\n')
		last, offset = line.number, offset+len(line.text)+1
	}
	return last
}

// symbolIn is the first range that starts in [from, to] and is in a symbol, nil if there is none.
func symbolIn(ranges []*searchv1.Range, from, to int) *searchv1.Range {
	i, _ := slices.BinarySearchFunc(ranges, from, func(r *searchv1.Range, at int) int { return int(r.GetStart().GetByteOffset()) - at })
	for ; i < len(ranges) && int(ranges[i].GetStart().GetByteOffset()) <= to; i++ {
		if ranges[i].GetSymbol() > 0 {
			return ranges[i]
		}
	}
	return nil
}

// symbol prints which symbol a match is in, behind its line.
func (t *Text) symbol(b *strings.Builder, f *searchv1.FileMatch, r *searchv1.Range) {
	if note := searchapi.SymbolNote(f, r); note != "" {
		b.WriteString("  ")
		paint(b, t.color, styleNote, []byte("‹"+note+"›"))
	}
}

// maxLine is how many bytes of a line are printed: minified files have lines
// of megabytes.
const maxLine = 300

// line prints one line that starts at offset of the document, cut to the
// surroundings of its first match.
func (t *Text) line(b *strings.Builder, line []byte, offset int, ranges []*searchv1.Range) {
	from, to := 0, len(line)
	if to > maxLine {
		if first := firstIn(ranges, offset, offset+to); first > maxLine/3 {
			from = first - maxLine/3
		}
		to = min(from+maxLine, to)
		from, to = snippet.RuneStart(line, from), snippet.RuneStart(line, to)
	}
	if from > 0 {
		paint(b, t.color, styleNote, []byte("…"))
	}
	t.highlight(b, stylePlain, line[from:to], offset+from, ranges)
	if to < len(line) {
		paint(b, t.color, styleNote, []byte("…"))
	}
}

// highlight prints text, which starts at offset, with ranges set off.
func (t *Text) highlight(b *strings.Builder, plain style, text []byte, offset int, ranges []*searchv1.Range) {
	at := 0
	for _, r := range ranges {
		start := clamp(int(r.GetStart().GetByteOffset())-offset, at, len(text))
		end := clamp(int(r.GetEnd().GetByteOffset())-offset, at, len(text))
		if end <= start {
			continue
		}
		paint(b, t.color, plain, text[at:start])
		paint(b, t.color, styleMatch, text[start:end])
		at = end
	}
	paint(b, t.color, plain, text[at:])
}

// Summary prints counts, time, and what was not searched. More is what shows files that were left out; empty if none were.
func (t *Text) Summary(s *searchv1.Statistics, c *searchv1.Coverage, took time.Duration, more string) error {
	var b strings.Builder
	if t.files > 0 {
		b.WriteByte('\n')
	}
	paint(&b, t.color, styleNote, fmt.Appendf(nil, "%s%s in %s, %s of %s searched, %s",
		atLeast(s), Count(s.GetMatches(), "match", "matches"), Count(s.GetFilesMatched(), "file", "files"),
		strconv.FormatUint(c.GetSearched()+c.GetPruned(), 10), Count(c.GetRequested(), "shard", "shards"),
		Duration(took)))
	if more != "" {
		paint(&b, t.color, styleNote, []byte("; more with "+more))
	}
	b.WriteByte('\n')
	uncovered(&b, t.color, c)
	_, err := io.WriteString(t.w, b.String())
	return err
}

// atLeast stands before counts that are lower bounds.
func atLeast(s *searchv1.Statistics) string {
	if s.GetCountsExact() {
		return ""
	}
	return "at least "
}

// uncovered has a line for each reason why parts were not searched, or not wholly.
func uncovered(b *strings.Builder, color bool, c *searchv1.Coverage) {
	for line := range Gaps(c) {
		paint(b, color, styleWarn, []byte(line))
		b.WriteByte('\n')
	}
}

// Gaps has a line for each reason why shards were not searched, or not wholly. It is not safe for a terminal.
func Gaps(c *searchv1.Coverage) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, g := range searchapi.Gaps(c.GetUncovered()) {
			repos, others := g.Named()
			names := strings.Join(repos, ", ")
			if others > 0 {
				names += " and " + Count(uint64(others), "other repo", "other repos")
			}
			before := ": "
			if g.Shards > 1 {
				before = "; the first: "
			}
			if !yield(g.Outcome() + ": " + Count(uint64(g.Shards), "shard", "shards") + " of " + names + ": " + searchapi.ReasonText(g.Reason) + before + g.Message) {
				return
			}
		}
	}
}

func shownMatches(f *searchv1.FileMatch) uint64 {
	var n uint64
	for _, c := range f.GetChunks() {
		n += uint64(len(c.GetRanges()))
	}
	return min(n, f.GetMatchCount())
}

func pathRanges(f *searchv1.FileMatch) []*searchv1.Range {
	for _, c := range f.GetChunks() {
		if c.GetFileName() {
			return c.GetRanges()
		}
	}
	return nil
}

// firstIn returns where the first range that touches [from, to) starts, relative to from.
func firstIn(ranges []*searchv1.Range, from, to int) int {
	for _, r := range ranges {
		if int(r.GetEnd().GetByteOffset()) > from && int(r.GetStart().GetByteOffset()) < to {
			return max(int(r.GetStart().GetByteOffset())-from, 0)
		}
	}
	return 0
}
