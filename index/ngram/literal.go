package ngram

import (
	"unicode"
	"unicode/utf8"
)

// MaxSpan bounds the distance in bytes from a match's start to a window of LiteralWindows: one
// block. So any two windows of one literal start in the same block or in adjacent ones, on which
// the literal planner of package postings relies. Of a longer literal, only the windows near its
// start are used.
const MaxSpan = BlockSize

// Window is a window that every match of a literal has. In a match at offset p it starts at an
// offset in [p+MinOffset, p+MaxOffset]. The two differ only if a rune before it has case variants
// of different length, such as k with U+212A, or is U+FFFD.
type Window struct {
	ID                   ID
	MinOffset, MaxOffset int
	// OfWords says that the window is left to an index of words: Extractor.ExtractBetween finds it
	// only in opaque superblocks, and in words that start there.
	OfWords bool
}

// LiteralWindows returns the windows that a text must contain to match literal, by ascending
// offset. With caseSensitive a match has the literal's bytes. Without, runes match by
// simple case folding, as under (?i) in package regexp. A short literal may have none. Windows that
// are part of others are omitted.
//
// U+FFFD in an expression also matches any invalid byte, and an invalid byte of the literal may be
// part of a valid rune in the text, so no window covers either of them.
func LiteralWindows(literal string, caseSensitive bool) []Window {
	s := literalScan{literal: literal, caseSensitive: caseSensitive, folds: folds()}
	// The last useful window ends at most two runes after the span.
	for i := 0; i < len(literal) && s.max <= MaxSpan+2*utf8.UTFMax; {
		i += s.rune(i)
	}
	s.end()
	return s.windows
}

// literalScan walks a literal's runes. min and max bound the offset of the next rune in a match.
type literalScan struct {
	literal       string
	caseSensitive bool
	folds         *foldTable
	min, max      int
	recent        [windowSize]unit // the last units
	run           int              // how many of recent are adjacent
	windows       []Window
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
	s.push(unit{rune: s.folds.fold(r), at: at, min: s.min, max: s.max})
	least, most := size, size
	if !s.caseSensitive {
		least, most = orbitLengths(r)
	}
	s.min += least
	s.max += most
	return size
}

// push adds the windows that end with a unit and are not part of a longer one.
func (s *literalScan) push(u unit) {
	copy(s.recent[:], s.recent[1:])
	s.recent[windowSize-1] = u
	s.run++
	a, b, c := &s.recent[0], &s.recent[1], &s.recent[2]
	if s.run >= windowSize {
		if id, ok := threeUnits(a.rune, b.rune, c.rune); ok {
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

// pair adds the window of the last two units, if there is one that is not part of a longer one.
func (s *literalScan) pair() {
	b, c := &s.recent[1], &s.recent[2]
	if id, ok := twoUnits(b.rune, c.rune); ok && !c.covered {
		b.covered, c.covered = true, true
		s.emit(id, *b, false)
	}
}

// end ends a run of adjacent units. No longer window may cover the last ones.
func (s *literalScan) end() {
	if s.run >= 2 {
		s.pair()
	}
	for _, u := range s.recent[windowSize-min(s.run, windowSize):] {
		if id, ok := oneUnit(u.rune); ok && !u.covered {
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

// orbitLengths returns the lengths of the shortest and the longest encoding of r's case variants.
func orbitLengths(r rune) (least, most int) {
	if r < utf8.RuneSelf && !unicode.IsLetter(r) {
		return 1, 1
	}
	least, most = utf8.UTFMax, 1
	Orbit(r, func(s rune) {
		least = min(least, utf8.RuneLen(s))
		most = max(most, utf8.RuneLen(s))
	})
	return least, most
}
