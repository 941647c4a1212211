// Package render shows results of searches and the progress of requests, on a terminal,
// as text or as JSON. What it prints on a terminal never holds a control character of what was found:
// content and paths come from strangers, and a terminal obeys escape sequences.
package render

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/internal/grep"
)

// style is a way to print: an SGR sequence, or nothing where colours are off.
type style string

// Styles in the usual colours of grep-like tools.
const (
	stylePlain style = ""
	styleRepo  style = "\x1b[2m"
	stylePath  style = "\x1b[35m"
	styleLine  style = "\x1b[32m"
	styleMatch style = "\x1b[1;31m"
	styleNote  style = "\x1b[2m"
	styleWarn  style = "\x1b[33m"
)

const reset = "\x1b[0m"

// GrepColors are the same colours for trawl grep, which prints files as they are.
var GrepColors = grep.Colors{Path: string(stylePath), Number: string(styleLine), Match: string(styleMatch), End: reset}

// paint writes text in a style to b, made safe to print.
func paint(b *strings.Builder, color bool, s style, text []byte) {
	paintRaw(b, color, s, []byte(Safe(text)))
}

// paintRaw writes text in a style to b as it is.
func paintRaw(b *strings.Builder, color bool, s style, text []byte) {
	if len(text) == 0 {
		return
	}
	if color && s != stylePlain {
		b.WriteString(string(s))
		defer b.WriteString(reset)
	}
	b.Write(text)
}

// Name is a name in a form that is safe to print, and that Meant reads. A name that prints is itself, unless Meant would read it as
// another one.
func Name(name []byte) string {
	if safe := Safe(name); safe == string(name) && Meant(safe) == safe {
		return safe
	}
	return Safe(escaped(name))
}

// escaped doubles the backslashes of a name in which Safe escapes other bytes.
func escaped(name []byte) []byte { return bytes.ReplaceAll(name, []byte(`\`), []byte(`\\`)) }

// Meant is the name whose form is Name. A text that is not such a form means itself.
func Meant(text string) string {
	if !strings.Contains(text, `\`) || !utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for rest := text; rest != ""; {
		r, isRune, tail, err := strconv.UnquoteChar(rest, 0)
		switch {
		case err != nil:
			return text
		case isRune:
			b.WriteRune(r)
		default:
			b.WriteByte(byte(r))
		}
		rest = tail
	}
	return b.String()
}

// Safe makes bytes of a stranger printable: control characters but tabs, and invalid
// UTF-8, are escaped as in a Go string.
func Safe(text []byte) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\t' || unicode.IsPrint(r):
			b.Write(text[:n])
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[n:]
	}
	return b.String()
}
