package regex

import (
	"iter"
	"regexp/syntax"
	"unicode/utf8"
)

// Matcher finds the matches of one expression. It may be used concurrently.
type Matcher interface {
	// Find gives the leftmost match, empty ones too, that starts at from or
	// later; of those that start there, the first by the order of the
	// alternatives. What stands before from still counts for ^ and \b. From is
	// 0, the end of a match, or another place where a rune begins. Matches of
	// the empty text can follow a match at once; Ranges leaves them out.
	Find(text []byte, from int) (start, end int, ok bool)
}

// NewMatcher compiles the expression: into automata whose states are made as
// texts need them, or, where it is too large for those, with the standard
// library. Both find the same. The error is that of Compile.
func NewMatcher(tree *syntax.Regexp, caseSensitive bool) (Matcher, error) {
	l, err := newLibrary(tree, caseSensitive)
	if err != nil {
		return nil, err
	}
	if a, ok := newAutomata(tree, caseSensitive, l); ok {
		return a, nil
	}
	return l, nil
}

// Ranges gives the successive matches in text that are not empty, as start and
// end: what FindAllIndex of the standard library gives, less the empty ones.
func Ranges(m Matcher, text []byte) iter.Seq2[int, int] {
	if a, ok := m.(*automata); ok {
		return a.ranges(text)
	}
	return successive(m.Find, text)
}

func successive(find func(text []byte, from int) (start, end int, ok bool), text []byte) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for from := 0; from <= len(text); {
			start, end, ok := find(text, from)
			if !ok || start < end && !yield(start, end) {
				return
			}
			from = end
			if start == end {
				_, size := utf8.DecodeRune(text[end:])
				from += max(size, 1)
			}
		}
	}
}
