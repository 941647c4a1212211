package grep

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"

	"github.com/trawl-search/trawl/internal/grep/localindex"
)

// Show says what to show of a file.
type Show struct {
	// Files shows only the names of files.
	Files bool
	// Count shows the number of lines, or with OnlyMatching of matches, if it is not 0.
	Count bool
	// OnlyMatching shows only the matches, each on a line of its own.
	OnlyMatching bool
	// Invert selects the lines that do not match.
	Invert bool
	// LineNumbers puts numbers before lines.
	LineNumbers bool
	// Before and After are how many lines are shown around each selected line.
	Before, After int
	// Most is how many lines of a file are selected at most; 0 stands for all.
	Most int
	// Colors sets off paths, numbers and matches; nil does not.
	Colors *Colors
}

// Colors are the control sequences before a path, a line's number and a match, and the one after each of them.
type Colors struct{ Path, Number, Match, End string }

// path is a path in its colour, or what stands for it.
func (s *Show) path(name string) string {
	if s.Colors == nil || name == "" {
		return name
	}
	return s.Colors.Path + name + s.Colors.End
}

// separator separates the lines of two files.
func (s *Show) separator() string {
	if s.Before+s.After == 0 || s.Files || s.Count {
		return ""
	}
	return "--\n"
}

// printer writes what is found in one file.
type printer struct {
	*Show
	pattern *Pattern
	name    string
	text    []byte
	out     []byte

	lines    int // that are selected
	selected int // lines, or matches when these are counted
	// Offset and number of the line up to which everything was written or skipped.
	at, line int
	shown    bool // lines; at is where the last of them ends
	after    int  // lines that are shown after at
}

// show appends the shown part of a text to out, and reports whether a line is selected.
func (s *Show) show(out []byte, name string, text localindex.Text, p *Pattern) ([]byte, bool) {
	w := printer{Show: s, pattern: p, name: name, text: text.Bytes, out: out, line: 1}
	w.search()
	switch found := w.selected > 0; {
	case !found:
		return out, false
	case s.Files:
		return append(append(w.out, cmp.Or(name, s.path(standardInput))...), '\n'), true
	case s.Count && text.NUL >= 0:
		return out, false // ripgrep does not count the lines of a binary file
	case s.Count && name == "":
		return fmt.Appendf(w.out, "%d\n", w.selected), true
	case s.Count:
		return fmt.Appendf(w.out, "%s:%d\n", name, w.selected), true
	case text.NUL >= 0:
		const warning = "%s: WARNING: stopped searching binary file after match (found \"\\0\" byte around offset %d)\n"
		return fmt.Appendf(w.out, warning, cmp.Or(name, standardInput), text.NUL), true
	}
	return w.out, true
}

// search selects lines until the output is complete.
func (w *printer) search() {
	next := 0 // the first line not looked at
	for next < len(w.text) {
		start, end, ok := w.pattern.Next(w.text, next)
		if !ok {
			start, end = len(w.text), len(w.text)
		}
		switch {
		case w.Invert:
			for next < start && w.goOn() {
				lineEnd := w.lineEnd(next)
				w.found(next, lineEnd)
				next = lineEnd + 1
			}
		case ok:
			w.found(start, end)
		}
		if next = end + 1; !ok || !w.goOn() {
			break
		}
	}
	if !w.Files && !w.Count {
		w.showAfter(len(w.text))
	}
}

// goOn reports whether another line may change the output.
func (w *printer) goOn() bool {
	return (!w.Files || w.selected == 0) && (w.Most == 0 || w.lines < w.Most)
}

func (w *printer) lineEnd(start int) int {
	if n := bytes.IndexByte(w.text[start:], '\n'); n >= 0 {
		return start + n
	}
	return len(w.text)
}

// found handles a selected line.
func (w *printer) found(start, end int) {
	w.lines++
	if w.Count && w.OnlyMatching && !w.Invert {
		for range w.pattern.Matches(w.text[start:end]) {
			w.selected++
		}
		return
	}
	w.selected++
	if w.Files || w.Count {
		return
	}
	w.showAfter(start)
	before := start
	for n := 0; n < w.Before && before > w.at; n++ {
		before = bytes.LastIndexByte(w.text[w.at:before-1], '\n') + 1 + w.at
	}
	if (w.Before > 0 || w.After > 0) && w.shown && before > w.at {
		w.out = append(w.out, "--\n"...)
	}
	w.skipTo(before)
	for w.at < start {
		w.showLine('-')
	}
	w.showSelected(start, end)
	w.after = w.After
}

// showAfter shows the lines after the last selected one, up to the line that begins at limit. Behind the most that are selected, lines
// that would be are shown like them, as ripgrep does.
func (w *printer) showAfter(limit int) {
	for ; w.after > 0 && w.at < limit; w.after-- {
		if end := w.lineEnd(w.at); w.lines == w.Most && w.matches(end) != w.Invert {
			w.showSelected(w.at, end)
		} else {
			w.showLine('-')
		}
	}
}

// matches reports whether the line at w.at, which ends at end, matches.
func (w *printer) matches(end int) bool {
	_, _, ok := w.pattern.Next(w.text[:end], w.at)
	return ok
}

// skipTo goes on to a line without showing those before it.
func (w *printer) skipTo(start int) {
	w.line += bytes.Count(w.text[w.at:start], []byte{'\n'})
	w.at = start
}

// showSelected shows the line at w.at.
func (w *printer) showSelected(start, end int) {
	line := w.text[start:end]
	if !w.OnlyMatching || w.Invert {
		w.prefix(':')
		w.marked(line)
		w.out = append(w.out, '\n')
		w.passLine(end)
		return
	}
	for from, to := range w.pattern.Matches(line) {
		w.prefix(':')
		w.colored(line[from:to])
		w.out = append(w.out, '\n')
	}
	w.passLine(end)
}

// marked appends a selected line with its matches in their colour.
func (w *printer) marked(line []byte) {
	at := 0
	if w.Colors != nil && !w.Invert {
		for from, to := range w.pattern.Matches(line) {
			w.out = append(w.out, line[at:from]...)
			w.colored(line[from:to])
			at = to
		}
	}
	w.out = append(w.out, line[at:]...)
}

// colored appends a match.
func (w *printer) colored(match []byte) {
	if w.Colors == nil || len(match) == 0 {
		w.out = append(w.out, match...)
		return
	}
	w.out = append(append(append(w.out, w.Colors.Match...), match...), w.Colors.End...)
}

// showLine shows the line at w.at, and moves on to the next.
func (w *printer) showLine(separator byte) {
	end := w.lineEnd(w.at)
	w.prefix(separator)
	w.out = append(append(w.out, w.text[w.at:end]...), '\n')
	w.passLine(end)
}

// passLine moves on to the line after the one that ends at end.
func (w *printer) passLine(end int) {
	w.at, w.shown = min(end+1, len(w.text)), true
	w.line++
}

// prefix appends what stands before the line at w.at: the path, unless it has none, and the number.
func (w *printer) prefix(separator byte) {
	if w.name != "" {
		w.out = append(append(w.out, w.name...), separator)
	}
	if !w.LineNumbers {
		return
	}
	if w.Colors == nil {
		w.out = strconv.AppendInt(w.out, int64(w.line), 10)
	} else {
		w.out = append(strconv.AppendInt(append(w.out, w.Colors.Number...), int64(w.line), 10), w.Colors.End...)
	}
	w.out = append(w.out, separator)
}
