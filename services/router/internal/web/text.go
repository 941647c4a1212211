package web

import (
	"fmt"
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/snippet"
)

// span is the bytes [start, end) of a text, which have a class.
type span struct {
	start, end int
	class      string
}

// name is a name of a repo, path or branch as a page shows it.
func name(text string) template.HTML { return code([]byte(text), nil, nil) }

// pathName is the name of a path. It is broken behind slashes where it does not fit, rather than within a word.
func pathName(path string) template.HTML {
	var b template.HTML
	for part := range strings.SplitAfterSeq(path, "/") {
		if b != "" {
			b += "<wbr>"
		}
		b += name(part)
	}
	return b
}

// code is text as HTML, in colours and with marks, both ascending and not overlapping.
// Nothing of the text becomes a tag or changes the direction of writing, and everything in
// it can be seen. A span covers whole characters: one that begins or ends within a character
// begins or ends after it.
func code(text []byte, colours, marks []span) template.HTML {
	var b []byte
	for at := 0; at < len(text); {
		colours, marks = after(colours, at), after(marks, at)
		end := runeEnd(text, min(edge(colours, at, len(text)), edge(marks, at, len(text))))
		class, marked := classAt(colours, at), len(marks) > 0 && marks[0].start <= at
		if marked {
			b = append(b, "<mark>"...)
		}
		if class != "" {
			b = append(b, `<span class="`+class+`">`...)
		}
		b = appendText(b, text[at:end])
		if class != "" {
			b = append(b, "</span>"...)
		}
		if marked {
			b = append(b, "</mark>"...)
		}
		at = end
	}
	return template.HTML(b) //nolint:gosec // appendText escapes the text; classes are constants
}

// after are the spans that end after a place.
func after(spans []span, at int) []span {
	for len(spans) > 0 && spans[0].end <= at {
		spans = spans[1:]
	}
	return spans
}

// edge is the next place after at where a span begins or ends, or else end.
func edge(spans []span, at, end int) int {
	if len(spans) == 0 {
		return end
	}
	if spans[0].start > at {
		return min(spans[0].start, end)
	}
	return min(spans[0].end, end)
}

func classAt(spans []span, at int) string {
	if len(spans) > 0 && spans[0].start <= at {
		return spans[0].class
	}
	return ""
}

// within are the spans in the bytes [start, end), counted from start.
func within(spans []span, start, end int) (inside []span) {
	for _, s := range spans {
		if s.end > start && s.start < end {
			inside = append(inside, span{max(s.start, start) - start, min(s.end, end) - start, s.class})
		}
	}
	return inside
}

// appendText appends text as HTML. What a reader could not see, or would take for something
// else, is written out: control characters, marks of direction, bytes that are not UTF-8.
func appendText(b, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			b = fmt.Appendf(b, `<i class="x">\x%02x</i>`, text[0])
		case r == '<':
			b = append(b, "&lt;"...)
		case r == '>':
			b = append(b, "&gt;"...)
		case r == '&':
			b = append(b, "&amp;"...)
		case r == '"':
			b = append(b, "&#34;"...)
		case r == '\'':
			b = append(b, "&#39;"...)
		case unseen(r):
			b = fmt.Appendf(b, `<i class="x">U+%04X</i>`, r)
		default:
			b = append(b, text[:n]...)
		}
		text = text[n:]
	}
	return b
}

// unseen reports whether a character does not show itself.
func unseen(r rune) bool {
	return r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// plain is text where there is room for characters only: in titles and attributes.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unseen(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// parted is a plain text that is broken behind slashes where it does not fit, rather than within a word.
func parted(text string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(text), "/", "/<wbr>")) //nolint:gosec // the text is escaped
}

// cut is text of at most about limit bytes.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:snippet.RuneStart(text, limit)] + "…"
}

// runeEnd is i, or the end of the rune that i is within.
func runeEnd(text []byte, i int) int {
	start := snippet.RuneStart(text, i)
	if start == i {
		return i
	}
	_, n := utf8.DecodeRune(text[start:])
	return max(i, start+n)
}

// window is the part [start, end) of a line that is shown if it may have limit bytes. The
// first mark is in it.
func window(line []byte, marks []span, limit int) (start, end int) {
	if len(line) <= limit {
		return 0, len(line)
	}
	if len(marks) > 0 && marks[0].end > limit {
		start = max(min(marks[0].start-limit/4, len(line)-limit), 0)
	}
	start = snippet.RuneStart(line, start)
	return start, snippet.RuneStart(line, min(start+limit, len(line)))
}

// shownLine is a line of at most limit bytes as HTML. What is left out is counted.
func shownLine(line []byte, colours, marks []span, limit int) template.HTML {
	start, end := window(line, marks, limit)
	html := code(line[start:end], within(colours, start, end), within(marks, start, end))
	return leftOut(start) + html + leftOut(len(line)-end)
}

func leftOut(n int) template.HTML {
	if n == 0 {
		return ""
	}
	return template.HTML(`<i class="x">… ` + plural(n, "byte", "bytes") + ` …</i>`) //nolint:gosec // a number
}
