package regex

import (
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// library is the standard library as a Matcher. It cannot start within a text and still see what
// precedes, so next matches what precedes too. next is nil if that does not matter.
type library struct{ first, next *regexp.Regexp }

func newLibrary(tree *syntax.Regexp, caseSensitive bool) (*library, error) {
	first, err := Compile(tree, caseSensitive)
	if err != nil || !seesBefore(tree) {
		return &library{first: first}, err
	}
	anyChar := &syntax.Regexp{Op: syntax.OpAnyChar}
	after := &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{anyChar, tree}}
	next, err := Compile(after, caseSensitive)
	return &library{first: first, next: next}, err
}

// seesBefore reports whether the text before a match can decide it.
func seesBefore(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(tree.Sub, seesBefore)
}

// Find implements Matcher.
func (m *library) Find(text []byte, from int) (start, end int, ok bool) {
	return m.findWhile(text, from, nil)
}

func (m *library) findWhile(text []byte, from int, goOn func() bool) (start, end int, ok bool) {
	if from > len(text) {
		return 0, 0, false
	}
	if from <= 0 || m.next == nil {
		from = max(from, 0)
		loc := findIndex(m.first, text[from:], goOn)
		if loc == nil {
			return 0, 0, false
		}
		return from + loc[0], from + loc[1], true
	}
	base := from - 1 // one byte of the rune is enough, since ^ and \b check only ASCII
	loc := findIndex(m.next, text[base:], goOn)
	if loc == nil {
		return 0, 0, false
	}
	_, skipped := utf8.DecodeRune(text[base+loc[0]:])
	return base + loc[0] + skipped, base + loc[1], true
}

// findIndex is re.FindIndex. In a long text it calls goOn, and finds nothing once that returns
// false.
func findIndex(re *regexp.Regexp, text []byte, goOn func() bool) []int {
	if goOn == nil || len(text) <= lookEvery {
		return re.FindIndex(text)
	}
	r := runes{text: text, goOn: goOn}
	loc := re.FindReaderIndex(&r)
	if r.stopped {
		return nil
	}
	return loc
}

// runes passes the runes of a text to a regexp.Regexp, which only the end of its input can stop.
type runes struct {
	text      []byte
	at, pause int
	goOn      func() bool
	stopped   bool
}

// ReadRune implements io.RuneReader.
func (r *runes) ReadRune() (c rune, size int, err error) {
	if r.at >= r.pause {
		r.stopped = r.stopped || r.at > 0 && !r.goOn()
		r.pause = r.at + lookEvery
	}
	if r.stopped || r.at >= len(r.text) {
		return 0, 0, io.EOF
	}
	if c = rune(r.text[r.at]); c < utf8.RuneSelf {
		size = 1
	} else {
		c, size = utf8.DecodeRune(r.text[r.at:])
	}
	r.at += size
	return c, size, nil
}
