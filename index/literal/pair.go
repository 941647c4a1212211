package literal

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
)

// letter is a byte to find and, if case does not count, the byte at its place in the other case. It
// is unknown if there are more than two such bytes, or if its place differs between matches.
type letter struct {
	lower, upper byte
	known        bool
	at           anchor
}

// letterOf returns the letter of an ASCII rune that is found without case.
func letterOf(r rune) letter {
	l := letter{lower: byte(r), upper: byte(r), known: true}
	if 'a' <= r|0x20 && r|0x20 <= 'z' {
		l.lower, l.upper = byte(r|0x20), byte(r&^0x20)
	}
	return l
}

func (l letter) frequency() int {
	if l.lower == l.upper {
		return frequencyInText(l.lower)
	}
	return frequencyInText(l.lower) + frequencyInText(l.upper)
}

// frequencyInText is Frequency, except for bytes beyond ASCII, for which it assumes text in a
// script that has them. In Russian, Japanese and Chinese help pages the first bytes of runes are
// 200 to 3,500 of 10,000, the second ones of kana and punctuation 40 to 900, and others about 90 to
// 250.
func frequencyInText(b byte) int {
	switch {
	case b < utf8.RuneSelf:
		return Frequency(b)
	case !utf8.RuneStart(b):
		if b <= 0x83 {
			return 500
		}
		return 150
	}
	return 2000
}

// lanes repeat a byte in each of the eight of a word.
const (
	lanes    = 0x0101010101010101
	highBits = 0x80 * lanes
)

// lane is a letter in each of the eight bytes of a word. A byte may equal the letter if it is zero
// after OR with fold and XOR with want.
type lane struct{ fold, want uint64 }

func (l letter) lane() lane {
	return lane{fold: uint64(l.lower^l.upper) * lanes, want: uint64(l.lower|l.upper) * lanes}
}

// pair finds two letters at a fixed distance, eight places at once.
type pair struct {
	first, second lane
	distance      int
}

// index returns the first place of the first letter at or after from; -1 if there is none.
func (p *pair) index(text []byte, from int) int {
	distance := p.distance
	for ; from+distance+8 <= len(text); from += 8 {
		a := (binary.LittleEndian.Uint64(text[from:]) | p.first.fold) ^ p.first.want
		b := (binary.LittleEndian.Uint64(text[from+distance:]) | p.second.fold) ^ p.second.want
		// The lowest set bit is that of the first byte that is zero.
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

// choosePair chooses the two letters with the least product of frequencies among those with only
// letters between them; ok is false if there are none. A letter of 0, 0 stands for no letter.
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

// sameLetter is how often a letter is near the same letter, in 10,000: far more often than by
// chance, because of numbers, lines of dashes and the like.
const sameLetter = 2000

// together returns about how many of 10,000² places have both letters. It adds one for letters that
// did not occur where frequencies were counted.
func (l letter) together(m letter) int {
	if l.lower == m.lower && l.upper == m.upper {
		return (l.frequency() + 1) * sameLetter
	}
	return (l.frequency() + 1) * (m.frequency() + 1)
}

// lettersOf returns the letters of a pattern, one for each byte. Without case, those of runes whose
// cases differ in length are unknown, except for k and s with wide.
func lettersOf(pattern string, caseSensitive, wide bool) []letter {
	var letters []letter
	if caseSensitive {
		for i := range len(pattern) {
			letters = append(letters, letter{pattern[i], pattern[i], true, anchor{byte: i}})
		}
		return letters
	}
	number := 0
	for _, r := range pattern {
		begin := len(letters)
		if r < utf8.RuneSelf && (wide || asciiOrbit(r)) {
			letters = append(letters, letterOf(r))
		} else {
			letters = appendLetters(letters, r)
		}
		for i := range letters[begin:] {
			letters[begin+i].at = anchor{number, i}
		}
		number++
	}
	return letters
}

// appendLetters appends the bytes of a rune in any case. A letter is unknown if the places differ,
// or if more than two bytes share one place.
func appendLetters(letters []letter, r rune) []letter {
	begin, known := len(letters), true
	var encoded [utf8.UTFMax]byte
	for _, c := range encoded[:utf8.EncodeRune(encoded[:], r)] {
		letters = append(letters, letter{lower: c, upper: c, known: true})
	}
	all := letters[begin:]
	ngram.Orbit(r, func(o rune) {
		n := utf8.EncodeRune(encoded[:], o)
		known = known && n == len(all)
		for i := 0; known && i < n; i++ {
			switch l, c := &all[i], encoded[i]; {
			case c == l.lower || c == l.upper:
			case l.lower == l.upper:
				l.upper = c
			default:
				known = false
			}
		}
	})
	if !known {
		return append(letters[:begin], letter{})
	}
	return letters
}

// frequencies has how often the bytes of ASCII occur in source code, in parts
// per 10,000, counted over the source tree of Go 1.26.
var frequencies = [utf8.RuneSelf]uint16{
	'\t': 407, '\n': 316, ' ': 1503, '!': 12, '"': 89, '#': 2, '$': 5, '%': 9, '&': 11, '\'': 7, '(': 117, ')': 117, '*': 20, '+': 12, ',': 247, '-': 19,
	'.': 123, '/': 123, '0': 343, '1': 136, '2': 105, '3': 73, '4': 77, '5': 45, '6': 70, '7': 38, '8': 59, '9': 40, ':': 103, ';': 10, '<': 10, '=': 85,
	'>': 7, '?': 1, 'A': 68, 'B': 34, 'C': 54, 'D': 47, 'E': 67, 'F': 37, 'G': 19, 'H': 17, 'I': 54, 'J': 2, 'K': 9, 'L': 39, 'M': 42, 'N': 36, 'O': 54,
	'P': 48, 'Q': 8, 'R': 66, 'S': 78, 'T': 70, 'U': 22, 'V': 37, 'W': 12, 'X': 40, 'Y': 12, 'Z': 5, '[': 25, '\\': 54, ']': 25, '^': 1, '_': 76, '`': 5,
	'a': 291, 'b': 78, 'c': 176, 'd': 151, 'e': 485, 'f': 164, 'g': 95, 'h': 85, 'i': 276, 'j': 6, 'k': 39, 'l': 179, 'm': 102, 'n': 312, 'o': 245,
	'p': 124, 'q': 7, 'r': 329, 's': 258, 't': 398, 'u': 150, 'v': 62, 'w': 36, 'x': 222, 'y': 65, 'z': 9, '{': 66, '|': 8, '}': 66,
}

// Frequency returns about how many in 10,000 bytes of source code are b.
func Frequency(b byte) int {
	if b >= utf8.RuneSelf {
		return 0
	}
	return int(frequencies[b])
}
