package grep

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
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
	*matcher

	name string
	nul  int // see localindex.Text
	out  []byte
	// countMatches counts matches even if they are not shown.
	countMatches bool

	lines   int // that are selected
	counted int // matches in them
	// Offset and number of the line up to which everything was written or skipped.
	at, line int
	begun    bool // a line was shown; at is where the last of them ends
	after    int  // lines that are shown after at
}

// show appends the shown part of the text to out, and reports whether a line is selected.
func (w *printer) show() (found bool) {
	counts := w.countsMatches()
	w.countMatches = w.countMatches || counts
	w.search()
	if w.Most > 0 && !w.goOn() && w.after == 0 {
		w.nul = -1 // ripgrep reads no further
	}
	count := w.lines
	if counts {
		count = w.counted
	}
	switch {
	case count == 0:
		return false
	case w.Files:
		w.out = append(append(w.out, cmp.Or(w.name, w.path(standardInput))...), '\n')
	case w.Count && w.nul >= 0:
		return false // ripgrep does not count the lines of a binary file
	case w.Count && w.name == "":
		w.out = fmt.Appendf(w.out, "%d\n", count)
	case w.Count:
		w.out = fmt.Appendf(w.out, "%s:%d\n", w.name, count)
	case w.nul >= 0:
		const warning = "%s: WARNING: stopped searching binary file after match (found \"\\0\" byte around offset %d)\n"
		w.out = fmt.Appendf(w.out, warning, cmp.Or(w.name, standardInput), w.nul)
	}
	return true
}

// search selects lines until the output is complete.
func (w *printer) search() {
	next := 0 // the first line not looked at
	for next < len(w.text) {
		start, end, ok := w.next(next)
		if !ok {
			start, end = len(w.text), len(w.text)
		}
		switch {
		case w.Invert:
			for next < start && w.goOn() {
				end := lineEnd(w.text, next)
				w.found(next, end)
				next = end + 1
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

// countsMatches reports whether Count counts matches and not lines.
func (w *printer) countsMatches() bool {
	return w.Count && (w.OnlyMatching || w.multiline) && !w.Invert
}

// goOn reports whether another line may change the output.
func (w *printer) goOn() bool {
	selected := w.lines
	if w.Count && w.multiline {
		selected = max(selected, w.counted)
	}
	return (!w.Files || w.lines == 0 || w.countMatches) && (w.Most == 0 || selected < w.Most)
}

// found handles a selected line, or lines.
func (w *printer) found(start, end int) {
	w.lines++
	if w.countMatches && !w.Invert {
		for range w.matches(start, end) {
			w.counted++
		}
	}
	if w.Files || w.Count {
		return
	}
	w.showAfter(start)
	before := start
	for n := 0; n < w.Before && before > w.at; n++ {
		before = bytes.LastIndexByte(w.text[w.at:before-1], '\n') + 1 + w.at
	}
	if (w.Before > 0 || w.After > 0) && w.begun && before > w.at {
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
		if end := lineEnd(w.text, w.at); w.lines == w.Most && w.selects(end) != w.Invert {
			w.showSelected(w.at, end)
		} else {
			w.showLine('-')
		}
	}
}

// selects reports whether the line at w.at, which ends at end, matches.
func (w *printer) selects(end int) bool {
	_, _, ok := w.in(w.text[:min(end+1, len(w.text))]).next(w.at) // with its line break: without one, an empty line is none
	return ok
}

// skipTo goes on to a line without showing those before it.
func (w *printer) skipTo(start int) {
	w.line += bytes.Count(w.text[w.at:start], []byte{'\n'})
	w.at = start
}

// showSelected shows the line at w.at, or the lines up to end.
func (w *printer) showSelected(start, end int) {
	first := w.line
	if !w.OnlyMatching || w.Invert {
		w.prefix(':')
		w.marked(start, end)
		w.out = append(w.out, '\n')
	} else {
		at, number := start, first // of the last match: a long line may have very many
		for match := range w.matches(start, end) {
			number += bytes.Count(w.text[at:match.Start], []byte{'\n'})
			at, w.line = match.Start, number
			for line := range bytes.SplitSeq(w.shown(match), []byte{'\n'}) {
				if len(line) > 0 || !w.multiline {
					w.prefix(':')
					w.colored(line)
					w.out = append(w.out, '\n')
				}
				w.line++
			}
		}
	}
	w.line = first + bytes.Count(w.text[start:end], []byte{'\n'})
	w.passLine(end)
}

// marked writes selected lines with their matches in their colour, or what replaces them.
func (w *printer) marked(start, end int) {
	if (w.Colors != nil || w.replacement != nil) && !w.Invert {
		for match := range w.matches(start, end) {
			w.write(w.text[start:match.Start])
			shown := w.shown(match)
			if match.End > end {
				shown = bytes.TrimSuffix(shown, []byte{'\n'})
			}
			w.colored(shown)
			start = match.End
		}
	}
	w.write(w.text[min(start, end):end])
}

// write writes text, with a prefix at the beginning of each line in it.
func (w *printer) write(text []byte) {
	for {
		line, rest, more := bytes.Cut(text, []byte{'\n'})
		if w.out = append(w.out, line...); !more {
			return
		}
		w.out = append(w.out, '\n')
		w.line++
		w.prefix(':')
		text = rest
	}
}

// colored writes a match.
func (w *printer) colored(match []byte) {
	if w.Colors == nil || len(match) == 0 {
		w.write(match)
		return
	}
	for i, line := range bytes.Split(match, []byte{'\n'}) {
		if i > 0 {
			w.write([]byte{'\n'})
		}
		w.out = append(append(append(w.out, w.Colors.Match...), line...), w.Colors.End...)
	}
}

// showLine shows the line at w.at, and moves on to the next.
func (w *printer) showLine(separator byte) {
	end := lineEnd(w.text, w.at)
	w.prefix(separator)
	w.out = append(append(w.out, w.text[w.at:end]...), '\n')
	w.passLine(end)
}

// passLine moves on to the line after the one that ends at end.
func (w *printer) passLine(end int) {
	w.at, w.begun = min(end+1, len(w.text)), true
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
