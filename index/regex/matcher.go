package regex

import (
	"iter"
	"regexp/syntax"
	"unicode/utf8"

	finder "github.com/trawl-search/trawl/index/literal"
)

// Matcher finds the matches of one expression. It is safe for concurrent use.
type Matcher interface {
	// Find returns the leftmost match, which may be empty, that starts at from or later; of several
	// that start there, the first in the order of the alternatives. The text before from still
	// counts for ^ and \b. from is 0, the end of a match, or another place where a rune begins. An
	// empty match may directly follow another match; Ranges skips those.
	Find(text []byte, from int) (start, end int, ok bool)
}

// NewMatcher compiles the expression: of whole words to a filter of what it finds otherwise, literals and alternations of a few into a search for
// these, other expressions into automata that make their states when texts need them, and expressions too
// large for automata with the standard library. All find the same. The errors are those of Compile.
func NewMatcher(tree *syntax.Regexp, caseSensitive bool) (Matcher, error) {
	return NewMatcherIn(nil, tree, caseSensitive)
}

// NewMatcherIn is NewMatcher with a bound on the states in all goroutines that search: memory. When
// it is used up, the standard library searches, which finds the same more slowly.
func NewMatcherIn(memory *Memory, tree *syntax.Regexp, caseSensitive bool) (Matcher, error) {
	if IsWholeWord(tree) {
		return newWholeWords(memory, tree.Sub[0], caseSensitive)
	}
	if literals, ok := LiteralsOf(tree, caseSensitive); ok && len(literals) <= mostFound {
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

// mostFound is the most literals that are searched for one by one: more are found sooner by an automaton.
const mostFound = 4

// newFinder finds the first of the literals at the leftmost place of any.
func newFinder(literals []Literal) Matcher {
	var set finder.Set
	for _, l := range literals {
		set = append(set, finder.New(l.Text, l.CaseSensitive))
	}
	if len(set) == 1 {
		return set[0]
	}
	return set
}

// Ranges returns the successive matches in text that are not empty, as start and end: those of
// FindAllIndex in the standard library without the empty ones. It allocates nothing.
func Ranges(m Matcher, text []byte) iter.Seq2[int, int] { return RangesWhile(m, text, 0, nil) }

// RangesWhile is Ranges for the matches that Find returns from a place on, in a text that takes long. It
// calls goOn about every 16 KiB, even if nothing matches, and ends when that returns false. Only searches for literals, which read a MiB
// in a few milliseconds at most, do not call it between two matches.
func RangesWhile(m Matcher, text []byte, from int, goOn func() bool) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) { // small enough to be inlined into the caller's loop
		ranges(m, text, from, goOn, yield)
	}
}

// FindWhile is m.Find for a text that takes long; see RangesWhile. ok is false once goOn has
// returned false.
func FindWhile(m Matcher, text []byte, from int, goOn func() bool) (start, end int, ok bool) {
	if long, ok := m.(interface {
		findWhile(text []byte, from int, goOn func() bool) (start, end int, ok bool)
	}); ok {
		return long.findWhile(text, from, goOn)
	}
	return m.Find(text, from)
}

func ranges(m Matcher, text []byte, from int, goOn func() bool, yield func(start, end int) bool) {
	find := func(from int) (start, end int, ok bool) { return FindWhile(m, text, from, goOn) }
	if a, ok := m.(*automata); ok {
		p := a.take(goOn)
		defer a.release(p)
		find = func(from int) (start, end int, ok bool) { return a.findOr(p, text, from) }
	}
	for pause := from + lookEvery; from <= len(text); {
		if goOn != nil && from > pause {
			if !goOn() {
				return
			}
			pause = from + lookEvery
		}
		start, end, ok := find(from)
		if !ok || start < end && !yield(start, end) {
			return
		}
		from = following(text, start, end)
	}
}

// following returns where the search continues after a match.
func following(text []byte, start, end int) int {
	if start < end {
		return end
	}
	_, size := utf8.DecodeRune(text[end:])
	return end + max(size, 1)
}
