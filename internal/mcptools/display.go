package mcptools

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/snippet"
)

// Text of repositories reaches a model as text only: a line of a file or a name can neither
// begin a new line nor hold a control character.

// clean makes a line of a file safe to show.
func clean(line []byte) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(string(line), string(utf8.RuneError)))
}

// shown is a name in the form for answers: quoted if it holds anything that does not
// print. Tools accept names in this form.
func shown(name string, limit int) string {
	if !utf8.ValidString(name) || strings.HasPrefix(name, `"`) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		name = strconv.Quote(name)
	}
	return cut(name, limit)
}

// meant is the reverse of shown.
func meant(name string) string {
	if strings.HasPrefix(name, `"`) {
		if plain, err := strconv.Unquote(name); err == nil {
			return plain
		}
	}
	return name
}

// cut shortens text to limit bytes, and states how many are missing.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	mark := fmt.Sprintf("…(+%d bytes)", len(text)-max(limit-20, 0))
	return text[:snippet.RuneStart(text, max(limit-len(mark), 0))] + mark
}

// part is a part of a line, with the bytes that are missing on both sides.
type part struct {
	text          string
	before, after int
}

// around shortens p to about limit bytes around the place that matters.
func (p part) around(at, limit int) part {
	if len(p.text) <= limit {
		return p
	}
	from := snippet.RuneStart(p.text, max(min(at-limit/3, len(p.text)-limit), 0))
	to := snippet.RuneStart(p.text, min(from+limit, len(p.text)))
	return part{p.text[from:to], p.before + from, p.after + len(p.text) - to}
}

// String is the part in a form that is safe to show, and says what is missing.
func (p part) String() string {
	text := clean([]byte(p.text))
	if p.before > 0 {
		text = fmt.Sprintf("(%d bytes left out)…", p.before) + text
	}
	if p.after > 0 {
		text += fmt.Sprintf("…(%d bytes left out)", p.after)
	}
	return text
}

// short is a commit as text shows it.
func short(commit string) string { return commit[:min(len(commit), 12)] }

// plural is a number with its noun.
func plural[N int | uint32 | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
