package regex

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// library is the standard library as a Matcher. It cannot begin within a text
// and still see what is before, so that next, which is nil where that does not
// matter, takes what is before along.
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

// seesBefore tells whether what stands before a match can decide it.
func seesBefore(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(tree.Sub, seesBefore)
}

func (m *library) Find(text []byte, from int) (start, end int, ok bool) {
	if from > len(text) {
		return 0, 0, false
	}
	if from <= 0 || m.next == nil {
		from = max(from, 0)
		loc := m.first.FindIndex(text[from:])
		if loc == nil {
			return 0, 0, false
		}
		return from + loc[0], from + loc[1], true
	}
	base := from - 1 // one byte of the rune is enough: ^ and \b ask for ASCII only
	loc := m.next.FindIndex(text[base:])
	if loc == nil {
		return 0, 0, false
	}
	_, skipped := utf8.DecodeRune(text[base+loc[0]:])
	return base + loc[0] + skipped, base + loc[1], true
}
