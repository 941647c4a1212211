package ngram

import (
	"unicode"
	"unicode/utf8"
)

// MaxSpan bounds, in bytes, how far from a match's start a window of
// LiteralWindows may start: one block. So any two windows of one literal start in
// the same block or in neighbouring ones, which is what the literal planner of
// package postings relies on. Of a longer literal only the windows near its start
// are used.
const MaxSpan = BlockSize

// Window is a window that every match of a literal holds. In a match at offset p
// it starts at an offset in [p+MinOffset, p+MaxOffset]. The two differ only
// where a rune before it has case variants of different length, such as k
// with U+212A, or is U+FFFD.
type Window struct {
	ID                   ID
	MinOffset, MaxOffset int
	// OfWords says that the window is left to an index of words: Extractor.ExtractBetween
	// finds it in opaque superblocks, and in words that start there, only.
	OfWords bool
}

// LiteralWindows returns the windows of a scheme that a text must hold to match literal, by
// ascending offset. With caseSensitive a match has the literal's bytes; without,
// runes match by simple case folding, as under (?i) in package regexp. A short literal
// may have none. Windows that others hold are left out.
//
// U+FFFD in an expression also matches any byte that is not part of valid UTF-8,
// and an invalid byte of the literal may be part of a valid rune in the text, so no
// window covers either of them.
func LiteralWindows(literal string, caseSensitive bool, scheme Scheme) []Window {
	s := literalScan{literal: literal, caseSensitive: caseSensitive, scheme: scheme, folds: folds()}
	// The last window to use ends at most two runes after the span.
	for i := 0; i < len(literal) && s.max <= MaxSpan+2*utf8.UTFMax; {
		i += s.rune(i)
	}
	s.end()
	return s.windows
}

// literalScan goes over a literal's runes; min and max bound the offset of the
// next rune in a match.
type literalScan struct {
	literal       string
	caseSensitive bool
	scheme        Scheme
	folds         *foldTable
	min, max      int
	recent        [windowSize]unit // the last units
	run           int              // how many of recent follow each other
	windows       []Window
	units         [utf8.UTFMax]rune
}

type unit struct {
	rune
	at       int // in the literal
	min, max int
	covered  bool // by a window
}

func (s *literalScan) rune(at int) (size int) {
	r, size := utf8.DecodeRuneInString(s.literal[at:])
	if r == utf8.RuneError {
		s.end()
		s.min++
		s.max += utf8.RuneLen(utf8.RuneError)
		return size
	}
	for _, u := range s.scheme.append(s.units[:0], s.folds.fold(r)) {
		s.push(unit{rune: u, at: at, min: s.min, max: s.max})
	}
	least, most := size, size
	if !s.caseSensitive {
		least, most = orbitLengths(r)
	}
	s.min += least
	s.max += most
	return size
}

// push adds the windows that end with a unit and that no longer one holds.
func (s *literalScan) push(u unit) {
	copy(s.recent[:], s.recent[1:])
	s.recent[windowSize-1] = u
	s.run++
	a, b, c := &s.recent[0], &s.recent[1], &s.recent[2]
	if s.run >= windowSize {
		if id, ok := s.scheme.window(a.rune, b.rune, c.rune); ok {
			a.covered, b.covered, c.covered = true, true, true
			s.emit(id, *a, ofWords(a.rune, b.rune, c.rune))
		}
		if s.caseSensitive {
			if id, ok := titleWindow(s.literal[a.at:]); ok {
				s.emit(id, *a, true)
			}
		}
	}
	if s.run >= 2 && min(b.rune, c.rune) >= leastWide {
		s.pair()
	}
}

// pair adds the window of the last two units, if there is one and no longer one holds it.
func (s *literalScan) pair() {
	b, c := &s.recent[1], &s.recent[2]
	if id, ok := s.scheme.two(b.rune, c.rune); ok && !c.covered {
		b.covered, c.covered = true, true
		s.emit(id, *b, false)
	}
}

// end ends a run of units that follow each other. Its last ones may be in no longer window.
func (s *literalScan) end() {
	if s.run >= 2 {
		s.pair()
	}
	for _, u := range s.recent[windowSize-min(s.run, windowSize):] {
		if id, ok := s.scheme.one(u.rune); ok && !u.covered {
			s.emit(id, u, false)
		}
	}
	s.run = 0
}

func (s *literalScan) emit(id ID, first unit, ofWords bool) {
	if first.max <= MaxSpan {
		s.windows = append(s.windows, Window{ID: id, MinOffset: first.min, MaxOffset: first.max, OfWords: ofWords})
	}
}

// orbitLengths returns the shortest and longest encoding of r's case variants.
func orbitLengths(r rune) (least, most int) {
	if r < utf8.RuneSelf && !unicode.IsLetter(r) {
		return 1, 1
	}
	least, most = utf8.UTFMax, 1
	orbit(r, func(s rune) {
		least = min(least, utf8.RuneLen(s))
		most = max(most, utf8.RuneLen(s))
	})
	return least, most
}
