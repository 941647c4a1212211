// Package literal finds a literal, or the first of several, in text, with or
// without regard to case.
//
// Without case, runes are compared by Unicode simple case folding, as regexp
// does under (?i): the Kelvin sign U+212A matches k although it is two bytes
// longer, so a match may be longer or shorter than the pattern.
package literal

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
)

// Finder finds one pattern. It is immutable and safe for concurrent use.
type Finder struct {
	pattern string
	caseful bool
	runes   []cases // without case
	maxLen  int

	// The search looks first for one letter or a pair of letters, at anchor in the pattern, or for
	// any of the bytes of leads.
	by     method
	anchor anchor
	letter letter
	pair   pair
	leads  [256]bool // with which matches can begin
	alone  bool      // the letter is the whole pattern
	// wide is set if a letter is k or s, to which runes outside of ASCII fold.
	wide bool
}

// anchor is the place of a letter in a pattern: a byte of one of its runes.
type anchor struct{ rune, byte int }

type method uint8

const (
	byLeads method = iota
	byLetter
	byPair
)

// rareLetter is the highest frequency of a letter that is searched for alone. A search for one
// letter is faster than for a pair, except at each place where it finds the letter.
const rareLetter = 90

// New returns a Finder of a pattern, which must not be empty.
func New(pattern string, caseSensitive bool) *Finder {
	caseSensitive = caseSensitive || !strings.ContainsFunc(pattern, func(r rune) bool { return unicode.SimpleFold(r) != r })
	f := &Finder{pattern: pattern, caseful: caseSensitive, maxLen: MaxLen(pattern, caseSensitive)}
	if !caseSensitive {
		for _, r := range pattern {
			f.runes = append(f.runes, casesOf(r))
		}
	}
	letters := lettersOf(pattern, caseSensitive, false)
	rarest := rarestOf(letters)
	switch {
	case rarest >= 0 && letters[rarest].frequency() <= rareLetter:
		f.by, f.anchor, f.letter = byLetter, letters[rarest].at, letters[rarest]
	case f.choosePair(letters):
	case f.choosePair(lettersOf(pattern, caseSensitive, true)):
		f.wide = true
	case rarest >= 0:
		f.by, f.anchor, f.letter = byLetter, letters[rarest].at, letters[rarest]
	}
	f.alone = f.by == byLetter && len(pattern) == 1
	if f.by == byLeads || f.wide {
		var encoded [utf8.UTFMax]byte
		first, _ := utf8.DecodeRuneInString(f.pattern)
		ngram.Orbit(first, func(r rune) {
			utf8.EncodeRune(encoded[:], r)
			f.leads[encoded[0]] = true
		})
	}
	return f
}

// rarestOf returns the index of the rarest letter, -1 if there is none.
func rarestOf(letters []letter) int {
	best := -1
	for i, l := range letters {
		if l.known && (best < 0 || l.frequency() < letters[best].frequency()) {
			best = i
		}
	}
	return best
}

func (f *Finder) choosePair(letters []letter) bool {
	at, pair, ok := choosePair(letters)
	if ok {
		f.by, f.anchor, f.pair = byPair, letters[at].at, pair
	}
	return ok
}

// MaxLen returns the length in bytes of the longest text that can match.
func (f *Finder) MaxLen() int { return f.maxLen }

// Find returns the leftmost match that starts at or after from.
func (f *Finder) Find(text []byte, from int) (start, end int, ok bool) {
	from = max(from, 0)
	if from > len(text) {
		return 0, 0, false
	}
	switch {
	case f.by == byLeads:
		return f.findLead(text, from, len(text))
	case f.wide:
		return findWide(text, from, f.maxLen, f.findAnchor, f.findLead)
	}
	return f.findAnchor(text, from, len(text))
}

// findLead compares wherever a match can begin, in [from, to).
func (f *Finder) findLead(text []byte, from, to int) (start, end int, ok bool) {
	for i := from; i < to; i++ {
		if f.leads[text[i]] {
			if end, ok := matchForward(text, i, f.runes); ok {
				return i, end, true
			}
		}
	}
	return 0, 0, false
}

// findAnchor looks for the letter or the pair, and compares in both directions from there. Starts
// ascend with anchors: between two starts in the wrong order, the prefix of the later one would
// have more runes than the pattern.
func (f *Finder) findAnchor(text []byte, from, _ int) (start, end int, ok bool) {
	for i := f.index(text, from); i >= 0; i = f.index(text, i+1) {
		if f.alone {
			return i, i + 1, true
		}
		if start, end, ok = f.around(text, from, i); ok {
			return start, end, true
		}
	}
	return 0, 0, false
}

func (f *Finder) index(text []byte, from int) int {
	if f.by == byPair {
		return f.pair.index(text, from)
	}
	return indexEither(text, f.letter.lower, f.letter.upper, from)
}

// around returns the match with its anchor at a place, if it starts at or after from.
func (f *Finder) around(text []byte, from, anchor int) (start, end int, ok bool) {
	if f.caseful {
		start = anchor - f.anchor.byte
		end = start + len(f.pattern)
		return start, end, start >= from && end <= len(text) && string(text[start:end]) == f.pattern
	}
	anchor -= f.anchor.byte
	if anchor < from {
		return 0, 0, false
	}
	if end, ok = matchForward(text, anchor, f.runes[f.anchor.rune:]); !ok {
		return 0, 0, false
	}
	start, ok = matchBackward(text[from:anchor], f.runes[:f.anchor.rune])
	return from + start, end, ok
}

// Windows in which indexEither looks for both bytes: large enough for a fast search, and small
// enough not to search for a rare byte far beyond a frequent one.
const (
	firstWindow = 64
	lastWindow  = 16 << 10
)

// indexEither returns the first place of either byte at or after from; -1 if
// there is none.
func indexEither(text []byte, a, b byte, from int) int {
	if a == b {
		if i := bytes.IndexByte(text[min(from, len(text)):], a); i >= 0 {
			return from + i
		}
		return -1
	}
	for size := firstWindow; from < len(text); from, size = from+size, min(2*size, lastWindow) {
		window := text[from:min(from+size, len(text))]
		at := bytes.IndexByte(window, a)
		if at >= 0 {
			window = window[:at]
		}
		if i := bytes.IndexByte(window, b); i >= 0 {
			at = i
		}
		if at >= 0 {
			return from + at
		}
	}
	return -1
}

// Set finds the leftmost of a few patterns, and of those with the same start the one that is listed first, like an alternation of
// literals. Its time is the sum of theirs. It is immutable and safe for concurrent use.
type Set []*Finder

// Find returns the leftmost match that starts at or after from. The finders search the same windows in turn, so that one that finds
// nothing does not search far beyond what another finds.
func (s Set) Find(text []byte, from int) (start, end int, ok bool) {
	from = max(from, 0)
	for size := firstWindow; from < len(text) && !ok; from, size = from+size, min(2*size, lastWindow) {
		before := from + size // matches start before it
		for _, f := range s {
			window := text[:min(before+f.maxLen+utf8.UTFMax, len(text))] // does not cut a rune of a match
			if first, last, found := f.Find(window, from); found && first < before {
				start, end, ok, before = first, last, true, first
			}
		}
	}
	return start, end, ok
}
