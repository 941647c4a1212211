package ngram

import "unicode/utf8"

// noUnit replaces a rune that is in no window: an invalid byte, or U+FFFD, which stands for invalid
// bytes in expressions.
const noUnit rune = -1

// leastWide is the first rune whose encoding has at least three bytes. Such runes are mostly
// Chinese, Japanese or Korean and say as much as two letters.
const leastWide = 0x800

// threeUnits returns the ID of the window of three units, if there is one. There is none if the
// first two are wide.
func threeUnits(a, b, c rune) (id ID, ok bool) {
	switch {
	case a|b|c < 0:
		return 0, false
	case a|b|c < utf8.RuneSelf:
		return ID(asciiWindow(byte(a), byte(b), byte(c))), true
	}
	return runesID(a, b, c), min(a, b) < leastWide
}

// twoUnits returns the ID of the window of two units, if there is one. There is one if neither is
// ASCII.
func twoUnits(a, b rune) (id ID, ok bool) {
	return runesID(0, a, b), min(a, b) >= utf8.RuneSelf
}

// oneUnit returns the ID of the window of one unit, if there is one. There is one if it is not
// ASCII.
func oneUnit(a rune) (id ID, ok bool) {
	return runesID(0, 0, a), a >= utf8.RuneSelf
}
