package literal

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// letter is a byte to be found, and its other case if that does not count. It is
// not known if the byte, or its place, is not the same in all matches.
type letter struct {
	lower, upper byte
	known        bool
}

// letterOf is the letter of a rune of ASCII that is found without case.
func letterOf(r rune) letter {
	l := letter{byte(r), byte(r), true}
	if 'a' <= r|0x20 && r|0x20 <= 'z' {
		l.lower, l.upper = byte(r|0x20), byte(r&^0x20)
	}
	return l
}

func (l letter) frequency() int {
	if l.lower == l.upper {
		return Frequency(l.lower)
	}
	return Frequency(l.lower) + Frequency(l.upper)
}

// lanes repeat a byte in each of the eight of a word.
const (
	lanes    = 0x0101010101010101
	highBits = 0x80 * lanes
)

// lane is a letter in each of the eight bytes of a word: bytes are equal to it
// that are zero after or with fold and exclusive or with want.
type lane struct{ fold, want uint64 }

func (l letter) lane() lane {
	return lane{fold: uint64(l.lower^l.upper) * lanes, want: uint64(l.lower) * lanes}
}

// pair finds two letters at a fixed distance, eight places at once.
type pair struct {
	first, second lane
	distance      int
}

// index is the first place of the first letter at or after from; -1 if there is none.
func (p *pair) index(text []byte, from int) int {
	distance := p.distance
	for ; from+distance+8 <= len(text); from += 8 {
		a := (binary.LittleEndian.Uint64(text[from:]) | p.first.fold) ^ p.first.want
		b := (binary.LittleEndian.Uint64(text[from+distance:]) | p.second.fold) ^ p.second.want
		// The lowest bit of what follows is that of the first byte which is zero.
		if zero := ((a | b) - lanes) &^ (a | b) & highBits; zero != 0 {
			return from + bits.TrailingZeros64(zero)/8
		}
	}
	for ; from+distance < len(text); from++ {
		if p.first.is(text[from]) && p.second.is(text[from+distance]) {
			return from
		}
	}
	return -1
}

func (l lane) is(b byte) bool { return (b|byte(l.fold))^byte(l.want) == 0 }

// maxDistance bounds the distance of a pair.
const maxDistance = 16

// choosePair chooses the letters whose frequencies have the least product, of
// those with nothing but letters between them; ok is false if there are none. A
// letter of 0, 0 stands for no letter.
func choosePair(letters []letter) (at int, p pair, ok bool) {
	least := 0
	for i, first := range letters {
		for j := i + 1; j < min(len(letters), i+1+maxDistance) && letters[j-1].known && letters[j].known; j++ {
			if product := first.together(letters[j]); !ok || product < least {
				at, p, least, ok = i, pair{first.lane(), letters[j].lane(), j - i}, product, true
			}
		}
	}
	return at, p, ok
}

// besideItself is how often a letter stands near the same letter, in 10,000: far
// more often than by chance, in numbers, rules of dashes and the like.
const besideItself = 2000

// together is how many of 10,000² places have both letters, about. One is added
// for letters that never occurred where frequencies were counted.
func (l letter) together(m letter) int {
	if l == m {
		return (l.frequency() + 1) * besideItself
	}
	return (l.frequency() + 1) * (m.frequency() + 1)
}

// lettersOf are those of a pattern, one for each of its bytes, or without case
// for each of its runes. Runes that have other cases outside of ASCII are
// not known, but for k and s with wide.
func lettersOf(pattern string, caseSensitive, wide bool) []letter {
	var letters []letter
	if caseSensitive {
		for i := range len(pattern) {
			letters = append(letters, letter{pattern[i], pattern[i], true})
		}
		return letters
	}
	for _, r := range pattern {
		if r < utf8.RuneSelf && (wide || asciiOrbit(r)) {
			letters = append(letters, letterOf(r))
		} else {
			letters = append(letters, letter{})
		}
	}
	return letters
}
