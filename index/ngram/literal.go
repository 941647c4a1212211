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

// LiteralWindows returns the windows that a text must hold to match literal, by
// ascending offset. With caseSensitive a match has the literal's bytes; without,
// runes match by simple case folding, as under (?i) in package regexp. A literal
// of fewer than three folded bytes has none.
//
// U+FFFD in an expression also matches any byte that is not part of valid UTF-8,
// and an invalid byte of the literal may be part of a valid rune in the text, so no
// window covers either of them.
func LiteralWindows(literal string, caseSensitive bool) []Window {
	s := literalScan{literal: literal, caseSensitive: caseSensitive, folds: folds()}
	// The last window to use ends at most two runes after the span.
	for i := 0; i < len(literal) && s.max <= MaxSpan+2*utf8.UTFMax; {
		i += s.rune(i)
	}
	return s.windows
}

// literalScan goes over a literal's runes; min and max bound the offset of the
// next rune in a match.
type literalScan struct {
	literal       string
	caseSensitive bool
	folds         *foldTable
	min, max      int
	recent        [windowSize]foldedByte // the last folded bytes
	run           int                    // how many of recent follow each other
	windows       []Window
	encoded       [utf8.UTFMax]byte
}

type foldedByte struct {
	c        byte
	at       int // in the literal
	min, max int
}

func (s *literalScan) rune(at int) (size int) {
	r, size := utf8.DecodeRuneInString(s.literal[at:])
	if r == utf8.RuneError {
		s.run = 0
		s.min++
		s.max += utf8.RuneLen(utf8.RuneError)
		return size
	}
	n := utf8.EncodeRune(s.encoded[:], s.folds.fold(r))
	for _, c := range s.encoded[:n] {
		s.push(foldedByte{c, at, s.min, s.max})
	}
	least, most := size, size
	if !s.caseSensitive {
		least, most = orbitLengths(r)
	}
	s.min += least
	s.max += most
	return size
}

func (s *literalScan) push(b foldedByte) {
	copy(s.recent[:], s.recent[1:])
	s.recent[windowSize-1] = b
	s.run++
	first := s.recent[0]
	if s.run < windowSize || first.max > MaxSpan {
		return
	}
	c := [windowSize]byte{first.c, s.recent[1].c, s.recent[2].c}
	s.emit(windowID(c[0], c[1], c[2]), first, ofWords(c[0], c[1], c[2]))
	if s.caseSensitive {
		if id, ok := titleWindow(s.literal[first.at:]); ok {
			s.emit(id, first, true)
		}
	}
}

func (s *literalScan) emit(id ID, first foldedByte, ofWords bool) {
	s.windows = append(s.windows, Window{ID: id, MinOffset: first.min, MaxOffset: first.max, OfWords: ofWords})
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
