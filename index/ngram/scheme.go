package ngram

import "unicode/utf8"

// Scheme says what the windows of text are that is not ASCII: they consist of units of
// the folded text. Windows of ASCII are the same in all schemes. The number of a scheme is
// part of the shard format: it is the layout of an n-gram index.
type Scheme uint8

const (
	// Bytes is the scheme of the first shards: units are bytes, so that a window has
	// one to three runes.
	Bytes Scheme = 1
	// Runes has a rune for a unit. Bytes that are no part of valid UTF-8, and U+FFFD, which
	// stands for them in expressions, are in no window.
	Runes Scheme = 2
)

// noUnit is in place of what no window holds.
const noUnit rune = -1

// leastWide is the first rune whose encoding has three bytes or more. Such a rune, of
// Chinese, Japanese or Korean for the most part, says as much as two letters.
const leastWide = 0x800

func (s Scheme) append(units []rune, folded rune) []rune {
	switch {
	case s == Bytes:
		var encoded [utf8.UTFMax]byte
		for _, c := range encoded[:utf8.EncodeRune(encoded[:], folded)] {
			units = append(units, rune(c))
		}
		return units
	case folded == utf8.RuneError:
		return append(units, noUnit)
	}
	return append(units, folded)
}

func (s Scheme) appendInvalid(units []rune, b byte) []rune {
	if s == Bytes {
		return append(units, rune(b))
	}
	return append(units, noUnit)
}

// window is the ID of the window of three units, if there is one: not if the first two are wide.
func (s Scheme) window(a, b, c rune) (id ID, ok bool) {
	switch {
	case a|b|c < 0:
		return 0, false
	case a|b|c < utf8.RuneSelf:
		return ID(asciiWindow(byte(a), byte(b), byte(c))), true
	case s == Bytes:
		return hashedID(uint32(a)<<16 | uint32(b)<<8 | uint32(c)), true
	}
	return runesID(a, b, c), min(a, b) < leastWide
}

// two is the ID of the window of two units, if there is one: if neither is ASCII.
func (s Scheme) two(a, b rune) (id ID, ok bool) {
	return runesID(0, a, b), s == Runes && min(a, b) >= utf8.RuneSelf
}

// one is the ID of the window of one unit, if there is one: if it is not ASCII.
func (s Scheme) one(a rune) (id ID, ok bool) {
	return runesID(0, 0, a), s == Runes && a >= utf8.RuneSelf
}
