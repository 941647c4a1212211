package regex

import (
	"bytes"
	"cmp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// skip knows where a match cannot begin. Its zero value knows nothing.
type skip struct {
	useful bool

	// finder finds a literal that every match has at the same offset, or one of several literals
	// anywhere within the line.
	finder Matcher
	offset int
	inLine bool

	// first are the bytes with which matches begin, if those are rare. prefix knows more than the
	// first byte, if it pays.
	first  *byteSet
	prefix *prefix
}

const (
	shortLiteral = 3     // a longer one anywhere in the line is better than one at a known offset
	rareFirst    = 1_000 // in 10,000 bytes: with as many, stopping at each costs as much as reading on
	// mostAnywhere is the most literals that are looked for if matches can begin nearly anywhere, so that an automaton alone would read
	// each byte: eight take up to 0.8 ns a byte, and reading takes 1.8.
	mostAnywhere = 2 * mostFound
)

func newSkip(tree *syntax.Regexp, caseSensitive bool, p *program) skip {
	var s skip
	sets := firstSets(p)
	if len(sets) == 0 {
		return s // the empty text may match anywhere
	}
	s.useful = true
	if prefix, ok := newPrefix(sets); ok {
		s.prefix = prefix
	} else if sets[0].frequency() <= rareFirst {
		s.first = &sets[0]
	}
	fixed, offset, ok := FixedLiteral(tree, caseSensitive)
	if len(fixed.Text) < shortLiteral && !CrossesLines(tree) {
		most := mostFound
		if s.prefix == nil && s.first == nil {
			most = mostAnywhere
		}
		needs, err := Analyze(tree, caseSensitive)
		if literals := anyOf(needs, most); err == nil && shortest(literals) > len(fixed.Text) {
			s.finder, s.inLine = newFinder(literals), true
			return s
		}
	}
	if ok {
		s.finder, s.offset = newFinder([]Literal{fixed}), offset
	}
	s.useful = s.finder != nil || s.prefix != nil || s.first != nil
	return s
}

// anyOf returns at most that many literals such that every match contains one of them, the longest
// known; none if no such set is known.
func anyOf(needs Needs, most int) (best []Literal) {
	switch n := needs.(type) {
	case Literal:
		return []Literal{n}
	case And:
		for _, child := range n.Children {
			if literals := anyOf(child, most); shortest(literals) > shortest(best) {
				best = literals
			}
		}
	case Or:
		for _, child := range n.Children {
			literals := anyOf(child, most)
			if len(literals) == 0 || len(best)+len(literals) > most {
				return nil
			}
			best = append(best, literals...)
		}
	}
	return best
}

// shortest returns the length of the shortest literal, 0 if there is none.
func shortest(literals []Literal) int {
	if len(literals) == 0 {
		return 0
	}
	return len(slices.MinFunc(literals, func(a, b Literal) int { return cmp.Compare(len(a.Text), len(b.Text)) }).Text)
}

// skipping is a skip applied to a text.
type skipping struct {
	*skip

	text  []byte
	found int // where the literal begins next, as seen from the place of the last search
	begin int // no match with the literal there begins earlier
}

func (s *skip) at(text []byte) skipping { return skipping{s, text, -1, 0} }

// next returns the first place, at or after at, where a match can begin; -1 if there is none. The
// sets know only bytes. Bytes within a rune are not a place to begin, though alone they would be
// invalid bytes, which can match.
func (s *skipping) next(at int) int {
	for {
		at = s.nextByte(at)
		if at < 0 || begins(s.text, at) {
			return at
		}
		at++
	}
}

// begins reports whether a rune, or a byte outside of any rune, begins at a place.
func begins(text []byte, at int) bool {
	if at >= len(text) || utf8.RuneStart(text[at]) {
		return true
	}
	for from := at - 1; from >= max(0, at-utf8.UTFMax+1); from-- {
		if utf8.RuneStart(text[from]) {
			_, size := utf8.DecodeRune(text[from:])
			return from+size <= at
		}
	}
	return true
}

func (s *skipping) nextByte(at int) int {
	if s.finder != nil {
		if at+s.offset > s.found && !s.find(at) {
			return -1
		}
		at = max(at, s.begin)
	}
	switch {
	case s.prefix != nil:
		return s.prefix.next(s.text, at)
	case s.first == nil:
		return at
	}
	for i, b := range s.text[at:] {
		if s.first[b] {
			return at + i
		}
	}
	return -1
}

// find looks for the literal of a match that begins at a place or later.
func (s *skipping) find(at int) (ok bool) {
	s.found, _, ok = s.finder.Find(s.text, at+s.offset)
	if !ok {
		return false
	}
	s.begin = s.found - s.offset
	if s.inLine {
		s.begin = at + 1 + bytes.LastIndexByte(s.text[at:s.found], '\n')
	}
	return true
}
