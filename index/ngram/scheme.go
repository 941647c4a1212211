package ngram

import "unicode/utf8"

// Scheme says which windows text beyond ASCII has: they consist of units of the folded text.
// Windows of ASCII are the same in all schemes. The number of a scheme is part of the shard format:
// it is the layout of an n-gram index.
type Scheme uint8

const (
	// Bytes is the scheme of the first shards: units are bytes, so that a window has
	// one to three runes.
	Bytes Scheme = 1
	// Runes has runes as units. No window contains an invalid byte, or U+FFFD, which stands for
	// invalid bytes in expressions.
	Runes Scheme = 2
)

// noUnit replaces a rune that is in no window.
const noUnit rune = -1

// leastWide is the first rune whose encoding has at least three bytes. Such runes are mostly
// Chinese, Japanese or Korean and say as much as two letters.
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

// window returns the ID of the window of three units, if there is one. There is none if the first
// two are wide.
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

// two returns the ID of the window of two units, if there is one. There is one if neither is ASCII.
func (s Scheme) two(a, b rune) (id ID, ok bool) {
	return runesID(0, a, b), s == Runes && min(a, b) >= utf8.RuneSelf
}

// one returns the ID of the window of one unit, if there is one. There is one if it is not ASCII.
func (s Scheme) one(a rune) (id ID, ok bool) {
	return runesID(0, 0, a), s == Runes && a >= utf8.RuneSelf
}
