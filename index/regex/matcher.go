package regex

import (
	"iter"
	"regexp/syntax"
	"unicode/utf8"

	finder "github.com/trawl-search/trawl/index/literal"
)

// Matcher finds the matches of one expression. It may be used concurrently.
type Matcher interface {
	// Find returns the leftmost match, empty ones too, that starts at from or
	// later; of those that start there, the first by the order of the
	// alternatives. What stands before from still counts for ^ and \b. From is
	// 0, the end of a match, or another place where a rune begins. Matches of
	// the empty text can follow a match at once; Ranges leaves them out.
	Find(text []byte, from int) (start, end int, ok bool)
}

// NewMatcher compiles the expression: literals, and alternations of them, into a
// search for those, others into automata whose states are made as texts need
// them, or, where it is too large for those, with the standard library. All
// find the same. The error is that of Compile.
func NewMatcher(tree *syntax.Regexp, caseSensitive bool) (Matcher, error) {
	return NewMatcherIn(nil, tree, caseSensitive)
}

// NewMatcherIn is NewMatcher, whose states, in all goroutines that search, take no more
// than memory has. Where it has no more, the standard library searches: it finds the
// same, more slowly.
func NewMatcherIn(memory *Memory, tree *syntax.Regexp, caseSensitive bool) (Matcher, error) {
	if literals, ok := LiteralsOf(tree, caseSensitive); ok && worthFinding(literals) {
		return newFinder(literals), nil
	}
	l, err := newLibrary(tree, caseSensitive)
	if err != nil {
		return nil, err
	}
	if a, ok := newAutomata(tree, caseSensitive, l, memory); ok {
		return a, nil
	}
	return l, nil
}

// worthFinding reports whether a search for literals is faster than an automaton:
// of several, those that are too short have no table.
func worthFinding(literals []Literal) bool {
	return len(literals) == 1 || each(literals, func(l Literal) bool { return len(l.Text) >= minLookup })
}

// newFinder finds the first of the literals at the leftmost place of any.
func newFinder(literals []Literal) Matcher {
	if len(literals) == 1 {
		return finder.New(literals[0].Text, literals[0].CaseSensitive)
	}
	patterns := make([]finder.Pattern, len(literals))
	for i, l := range literals {
		patterns[i] = finder.Pattern(l)
	}
	return finder.NewSet(patterns)
}

// Ranges returns the successive matches in text that are not empty, as start and
// end: what FindAllIndex of the standard library gives, less the empty ones. It
// allocates nothing.
func Ranges(m Matcher, text []byte) iter.Seq2[int, int] { return RangesFrom(m, text, 0) }

// RangesFrom returns those that Find gives from a place on.
func RangesFrom(m Matcher, text []byte, from int) iter.Seq2[int, int] {
	return RangesWhile(m, text, from, nil)
}

// RangesWhile is RangesFrom in a text that takes long. It asks goOn every 16 KiB or
// so, even where nothing matches, and ends when that is false. Only searches for
// literals, which read a MiB in less than some milliseconds, do not ask between two matches.
func RangesWhile(m Matcher, text []byte, from int, goOn func() bool) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) { // small enough to be inlined into the caller's loop
		ranges(m, text, from, goOn, yield)
	}
}

// FindWhile is m.Find in a text that takes long; see RangesWhile. It is not ok once
// goOn was false.
func FindWhile(m Matcher, text []byte, from int, goOn func() bool) (start, end int, ok bool) {
	switch m := m.(type) {
	case *automata:
		return m.findWhile(text, from, goOn)
	case *library:
		return m.findWhile(text, from, goOn)
	}
	return m.Find(text, from)
}

func ranges(m Matcher, text []byte, from int, goOn func() bool, yield func(start, end int) bool) {
	if a, ok := m.(*automata); ok {
		a.ranges(text, from, goOn, yield)
		return
	}
	for pause := from + lookEvery; from <= len(text); {
		if goOn != nil && from > pause {
			if !goOn() {
				return
			}
			pause = from + lookEvery
		}
		start, end, ok := FindWhile(m, text, from, goOn)
		if !ok || start < end && !yield(start, end) {
			return
		}
		from = following(text, start, end)
	}
}

// following is where the search goes on after a match.
func following(text []byte, start, end int) int {
	if start < end {
		return end
	}
	_, size := utf8.DecodeRune(text[end:])
	return end + max(size, 1)
}
