package literal

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

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

// caseless reports whether r has no other case.
func caseless(r rune) bool { return unicode.SimpleFold(r) == r }

// asciiOrbit reports whether r has ASCII cases only: all of ASCII but k and s,
// which U+212A and U+017F fold to.
func asciiOrbit(r rune) bool {
	ascii := true
	orbit(r, func(o rune) { ascii = ascii && o < utf8.RuneSelf })
	return ascii
}

// MaxLen is the length in bytes of the longest text that matches a pattern.
func MaxLen(pattern string, caseSensitive bool) (n int) {
	if caseSensitive {
		return len(pattern)
	}
	for _, r := range pattern {
		n += widest(r)
	}
	return n
}

func widest(r rune) (width int) {
	orbit(r, func(o rune) { width = max(width, utf8.RuneLen(o)) })
	return width
}
