package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// LineStyle selects what Lines prints of a match.
type LineStyle struct {
	Color bool
	// Context separates groups of lines that do not follow each other by a line of two dashes.
	Context bool
	// Only prints each match alone instead of its line.
	Only bool
	// Column adds the column of the first match of a line, or of each match with Only, from 1, in bytes.
	Column bool
	// NoNumbers leaves out the numbers of lines.
	NoNumbers bool
	// Raw prints the text of lines in its own bytes. It is not for terminals.
	Raw bool
	// Whole warns of a file that has more matches than are printed.
	Whole bool
	// Link of paths and numbers of lines.
	Link Link
}

// Lines prints results for other programs, as grep does: REPO:PATH:LINE:TEXT for each line that
// matches, and with dashes for lines around it. A file that matches by its path alone is REPO:PATH.
// It says nothing else on its output; what a reader must know goes to notes. It is for one goroutine.
type Lines struct {
	notes
	w      io.Writer
	style  LineStyle
	groups int
	known  contents
	on     string // the branch of the file that is being printed, if it is printed
}

// NewLines returns a printer to w that warns on warnings.
func NewLines(w, warnings io.Writer, style LineStyle) *Lines {
	return &Lines{notes: notes{warnings}, w: w, style: style}
}

// File prints the lines of one file. The error is the writer's.
func (l *Lines) File(f *searchv1.FileMatch) error {
	var b strings.Builder
	if !l.style.Raw {
		l.on = l.known.otherBranch(f)
	}
	l.groups += l.file(&b, f)
	if _, err := io.WriteString(l.w, b.String()); err != nil {
		return err
	}
	if err := l.score(f); err != nil {
		return err
	}
	if shown, all := shownMatches(f), f.GetMatchCount(); l.style.Whole && shown < all {
		_, err := fmt.Fprintf(l.to, "%s: %d of %s are shown\n", fileName(f), shown, Count(all, "match", "matches"))
		return err
	}
	return nil
}

// file prints a file, and returns how many groups of lines it had.
func (l *Lines) file(b *strings.Builder, f *searchv1.FileMatch) (groups int) {
	inContent := false
	last := uint32(0)
	for _, c := range f.GetChunks() {
		if c.GetFileName() {
			continue
		}
		inContent = true
		if first := c.GetContentStart().GetLineNumber(); last == 0 || first > last+1 {
			if l.style.Context && l.groups+groups > 0 {
				b.WriteString("--\n")
			}
			groups++
		}
		for _, line := range linesOf(c, l.style.Raw) {
			last = line.number
			l.line(b, f, line)
		}
	}
	if !inContent {
		l.place(b, f)
		b.WriteByte('\n')
	}
	return groups
}

func (l *Lines) line(b *strings.Builder, f *searchv1.FileMatch, line matchedLine) {
	separator := ":"
	if len(line.matches) == 0 {
		separator = "-"
	}
	head := func(from int) {
		l.place(b, f)
		b.WriteString(separator)
		if !l.style.NoNumbers {
			l.style.Link.linked(b, f, line.number, func(b *strings.Builder) { paint(b, l.style.Color, styleLine, fmt.Append(nil, line.number)) })
			b.WriteString(separator)
		}
		if l.style.Column && len(line.matches) > 0 {
			fmt.Fprintf(b, "%d%s", from+1, separator)
		}
	}
	if l.style.Only && (len(line.matches) > 0 || !l.style.Context) {
		for _, m := range line.matches {
			if m.from == m.to {
				continue
			}
			head(m.from)
			l.text(b, styleMatch, line.text[m.from:m.to])
			b.WriteByte('\n')
		}
		return
	}
	from := 0
	if len(line.matches) > 0 {
		from = line.matches[0].from
	}
	head(from)
	at := 0
	for _, m := range line.matches {
		l.text(b, stylePlain, line.text[at:m.from])
		l.text(b, styleMatch, line.text[m.from:m.to])
		at = m.to
	}
	l.text(b, stylePlain, line.text[at:])
	b.WriteByte('\n')
}

// text prints a part of a line.
func (l *Lines) text(b *strings.Builder, s style, text []byte) {
	if l.style.Raw {
		paintRaw(b, l.style.Color, s, text)
	} else {
		paint(b, l.style.Color, s, text)
	}
}

func (l *Lines) place(b *strings.Builder, f *searchv1.FileMatch) {
	place(b, l.style.Color, l.style.Link, f, l.on)
}

// notes is where a printer for other programs says what a reader must know.
type notes struct{ to io.Writer }

// score prints the score of a file and its reasons, if the answer explains them.
func (n notes) score(f *searchv1.FileMatch) error {
	if f.GetExplanation() == "" {
		return nil
	}
	_, err := fmt.Fprintf(n.to, "%s: score %g: %s\n", fileName(f), f.GetScore(), Safe([]byte(f.GetExplanation())))
	return err
}

func fileName(f *searchv1.FileMatch) string {
	return Name([]byte(f.GetRepo() + ":" + string(f.GetPath())))
}

// Explanation prints how the query was answered.
func (n notes) Explanation(e *searchv1.Explanation, searched uint64) error {
	return NewText(n.to, false, false).Explanation(e, searched)
}

// Summary warns of what is missing from an answer, and prints nothing else of it.
func (n notes) Summary(s *searchv1.Statistics, c *searchv1.Coverage, _ time.Duration, more string) error {
	var b strings.Builder
	if more != "" {
		fmt.Fprintf(&b, "%s%s match; more are shown with %s\n", atLeast(s), Count(s.GetFilesMatched(), "file", "files"), more)
	}
	uncovered(&b, false, c)
	_, err := io.WriteString(n.to, b.String())
	return err
}

// matchedLine is a line of a chunk.
type matchedLine struct {
	number  uint32
	text    []byte // without its line break
	matches []matchInLine
}

// matchInLine is the part of a match that lies in a line, in bytes. It is empty where the match has only the line's end.
type matchInLine struct{ from, to int }

// linesOf splits a chunk into its lines. Raw ones keep the carriage return of CRLF.
func linesOf(c *searchv1.ChunkMatch, raw bool) (lines []matchedLine) {
	number := max(c.GetContentStart().GetLineNumber(), 1)
	offset := int(c.GetContentStart().GetByteOffset())
	rest, ranges := bytes.TrimSuffix(c.GetContent(), []byte("\n")), c.GetRanges()
	for {
		text, tail, more := bytes.Cut(rest, []byte("\n"))
		line := matchedLine{number: number, text: text}
		if !raw {
			line.text = bytes.TrimSuffix(text, []byte("\r"))
		}
		for len(ranges) > 0 && int(ranges[0].GetEnd().GetByteOffset()) <= offset {
			ranges = ranges[1:]
		}
		for _, r := range ranges {
			if int(r.GetStart().GetByteOffset()) > offset+len(text) {
				break
			}
			from := clamp(int(r.GetStart().GetByteOffset())-offset, 0, len(line.text))
			to := clamp(int(r.GetEnd().GetByteOffset())-offset, 0, len(line.text))
			line.matches = append(line.matches, matchInLine{from, max(from, to)})
		}
		lines = append(lines, line)
		if !more {
			return lines
		}
		number++
		offset += len(text) + 1
		rest = tail
	}
}
