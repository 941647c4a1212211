// Package literal finds a literal in text, with or without regard to case.
//
// Without case, runes are compared by Unicode simple case folding, as regexp
// does under (?i): the Kelvin sign U+212A matches k although it is two bytes
// longer, so a match may be longer or shorter than the pattern.
package literal

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Finder finds one pattern. It is immutable and safe for concurrent use.
type Finder struct {
	pattern []byte
	caseful bool

	runes  []rune
	anchor int // index in runes of the rune that is searched first; -1 when there is none
	lo, up byte

	lead   [256]bool // first bytes of text that can match runes[0], where there is no anchor
	maxLen int
}

// New returns a Finder of a pattern, which must not be empty.
func New(pattern string, caseSensitive bool) *Finder {
	f := &Finder{pattern: []byte(pattern), caseful: caseSensitive, maxLen: len(pattern)}
	if caseSensitive {
		return f
	}
	f.runes = []rune(pattern)
	f.maxLen = 0
	for _, r := range f.runes {
		f.maxLen += widest(r)
	}
	f.anchor = chooseAnchor(f.runes)
	if f.anchor >= 0 {
		r := f.runes[f.anchor]
		f.lo, f.up = byte(unicode.ToLower(r)), byte(unicode.ToUpper(r))
		return f
	}
	var buf [utf8.UTFMax]byte
	orbit(f.runes[0], func(r rune) {
		utf8.EncodeRune(buf[:], r)
		f.lead[buf[0]] = true
	})
	return f
}

// MaxLen is the length in bytes of the longest text that can match.
func (f *Finder) MaxLen() int { return f.maxLen }

// Find returns the leftmost match that starts at or after from.
func (f *Finder) Find(text []byte, from int) (start, end int, ok bool) {
	switch {
	case from > len(text):
		return 0, 0, false
	case f.caseful:
		i := bytes.Index(text[from:], f.pattern)
		return from + i, from + i + len(f.pattern), i >= 0
	case f.anchor >= 0:
		return f.findAnchored(text, from)
	}
	for i := from; i < len(text); i++ {
		if f.lead[text[i]] {
			if e, ok := matchForward(text, i, f.runes); ok {
				return i, e, true
			}
		}
	}
	return 0, 0, false
}

// findAnchored looks for the anchor in both its cases and compares outwards.
// Starts ascend with anchors: between two starts in the wrong order the later
// one's prefix would hold more runes than the pattern has.
func (f *Finder) findAnchored(text []byte, from int) (start, end int, ok bool) {
	before, after := f.runes[:f.anchor], f.runes[f.anchor+1:]
	for i := indexEither(text, f.lo, f.up, from); i >= 0; i = indexEither(text, f.lo, f.up, i+1) {
		start, ok := matchBackward(text[from:i], before)
		if !ok {
			continue
		}
		if end, ok := matchForward(text, i+1, after); ok {
			return from + start, end, true
		}
	}
	return 0, 0, false
}

// Windows in which indexEither looks for both bytes: so large that searching
// them is fast, so small that a rare byte is not searched far beyond a
// frequent one.
const (
	firstWindow = 64
	lastWindow  = 16 << 10
)

// indexEither returns the first place of either byte at or after from; -1 if
// there is none.
func indexEither(text []byte, a, b byte, from int) int {
	for size := firstWindow; from < len(text); from, size = from+size, min(2*size, lastWindow) {
		window := text[from:min(from+size, len(text))]
		at := bytes.IndexByte(window, a)
		if at >= 0 {
			window = window[:at]
		}
		if i := bytes.IndexByte(window, b); a != b && i >= 0 {
			at = i
		}
		if at >= 0 {
			return from + at
		}
	}
	return -1
}

// matchForward compares runes with the text that starts at i and returns where they end.
func matchForward(text []byte, i int, runes []rune) (end int, ok bool) {
	for _, want := range runes {
		if i >= len(text) {
			return 0, false
		}
		got, size := rune(text[i]), 1
		if got >= utf8.RuneSelf {
			got, size = utf8.DecodeRune(text[i:])
		}
		if !sameFold(want, got, size) {
			return 0, false
		}
		i += size
	}
	return i, true
}

// matchBackward compares runes with the text that ends at the end of text and
// returns where they start.
func matchBackward(text []byte, runes []rune) (start int, ok bool) {
	i := len(text)
	for _, want := range slices.Backward(runes) {
		if i == 0 {
			return 0, false
		}
		got, size := rune(text[i-1]), 1
		if got >= utf8.RuneSelf {
			got, size = utf8.DecodeLastRune(text[:i])
		}
		if !sameFold(want, got, size) {
			return 0, false
		}
		i -= size
	}
	return i, true
}

// sameFold reports whether two runes are equal but for case. An invalid byte
// of the text equals nothing: patterns are valid UTF-8.
func sameFold(want, got rune, size int) bool {
	if want == got {
		return got != utf8.RuneError || size > 1
	}
	if want < utf8.RuneSelf && got < utf8.RuneSelf {
		return want|0x20 == got|0x20 && 'a' <= want|0x20 && want|0x20 <= 'z'
	}
	if got == utf8.RuneError {
		return false
	}
	for r := unicode.SimpleFold(want); r != want; r = unicode.SimpleFold(r) {
		if r == got {
			return true
		}
	}
	return false
}

// orbit calls f with every rune that equals r but for case, r included.
func orbit(r rune, f func(rune)) {
	f(r)
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		f(o)
	}
}

func widest(r rune) (width int) {
	orbit(r, func(o rune) { width = max(width, utf8.RuneLen(o)) })
	return width
}
