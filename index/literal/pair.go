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
