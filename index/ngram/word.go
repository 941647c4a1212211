package ngram

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// MaxWord is the length in bytes of the longest word that an index of words has. Hashes in
// hexadecimal, up to SHA-512, fit.
const MaxWord = 128

// Text is opaque where words alone cannot answer. Two runes that are not word bytes fold to
// letters: U+212A to k and U+017F to s. An extended word is a maximal run of word bytes and of
// these two runes. A superblock is opaque if it touches an extended word that has one of the runes
// or is longer than MaxWord. Superblocks of data, see isData, are opaque, too: their words are all
// different, so an index of words would take more room than the data.
//
// So every match of an expression that matches only word bytes, with case or without, lies within
// one extended word. Either that is a word of at most MaxWord bytes, or all superblocks that it
// touches are opaque.

// Runes that fold to ASCII letters, as UTF-8.
var (
	kelvin = []byte("\u212A")
	longS  = []byte("\u017F")
)

// wordByte says for each byte whether it is one of [0-9A-Za-z_].
var wordByte = func() (table [256]bool) {
	for c := range table {
		table[c] = '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
	}
	return table
}()

// IsWord reports whether a byte is one of [0-9A-Za-z_]: a word byte.
func IsWord(b byte) bool { return wordByte[b] }

// IsWords reports whether a text consists of word bytes, at least one.
func IsWords[T string | []byte](text T) bool {
	for i := range len(text) {
		if !wordByte[text[i]] {
			return false
		}
	}
	return len(text) > 0
}

// AppendOpaque appends the opaque superblocks of a blob, ascending, counted from 0.
func AppendOpaque(dst []uint32, blob []byte) []uint32 {
	begin := len(dst)
	// Among MaxWord + 1 successive offsets there is a multiple of MaxWord.
	for at := MaxWord; at < len(blob); {
		if !wordByte[blob[at]] {
			at += MaxWord
			continue
		}
		start, end := wordAround(blob, at)
		if end-start > MaxWord {
			dst = appendTouched(dst, begin, start, end)
		}
		at += MaxWord * max(1, (end-at+MaxWord-1)/MaxWord)
	}
	for start := 0; start < len(blob); start += SuperblockSize {
		if isData(blob, start) {
			dst = append(dst, uint32(start/SuperblockSize))
		}
	}
	if !isASCII(blob) {
		dst = appendHolding(dst, begin, blob, kelvin)
		dst = appendHolding(dst, begin, blob, longS)
	}
	slices.Sort(dst[begin:])
	return dst[:begin+len(slices.Compact(dst[begin:]))]
}

// A superblock is sampled at places dataStep bytes apart, the first one at its start. It is data if
// at least half of them are in random words, and there are at least leastPlaces.
const (
	dataStep    = 256
	leastPlaces = 8
	// leastRandom is the least length in bytes of a random word.
	leastRandom = 16
)

// isData reports whether the superblock at start is data: base64, hashes, tables of numbers.
func isData(blob []byte, start int) bool {
	end := min(start+SuperblockSize, len(blob))
	places := (end - start + dataStep - 1) / dataStep
	if places < leastPlaces {
		return false
	}
	others := places / 2 // how many need not be in random words
	for at := start; at < end; at += dataStep {
		if wordByte[blob[at]] && isRandom(wordNear(blob, at)) {
			continue
		}
		if others--; others < 0 {
			return false
		}
	}
	return true
}

// wordNear returns the word around the byte at at, or a part of a word longer than MaxWord.
func wordNear(blob []byte, at int) []byte {
	from, to := max(0, at-MaxWord), min(len(blob), at+MaxWord+1)
	start, end := wordAround(blob[from:to], at-from)
	return blob[from+start : from+end]
}

// isRandom reports whether a word looks random: it has a digit, and between adjacent bytes it
// changes between digits, capitals and lower case in at least two of five places. An underscore
// counts as the byte before it.
func isRandom(word []byte) bool {
	if len(word) < leastRandom {
		return false
	}
	changes, digit, last := 0, false, wordClass[word[0]]
	for _, c := range word {
		class := wordClass[c]
		digit = digit || class == digitClass
		if class != last && class != 0 {
			changes++
			last = class
		}
	}
	return digit && changes*5 >= len(word)*2
}

const digitClass = 1

// wordClass distinguishes digits, capitals and lower-case letters; other bytes are 0.
var wordClass = func() (table [256]uint8) {
	for c := range table {
		switch {
		case '0' <= c && c <= '9':
			table[c] = digitClass
		case 'A' <= c && c <= 'Z':
			table[c] = 2
		case 'a' <= c && c <= 'z':
			table[c] = 3
		}
	}
	return table
}()

// wordAround returns the bounds of the word around the byte at at.
func wordAround(blob []byte, at int) (start, end int) {
	for start = at; start > 0 && wordByte[blob[start-1]]; start-- {
	}
	for end = at + 1; end < len(blob) && wordByte[blob[end]]; end++ {
	}
	return start, end
}

// appendHolding appends the superblocks touched by extended words with a rune. dst has the blob's
// superblocks from begin on.
func appendHolding(dst []uint32, begin int, blob, encoded []byte) []uint32 {
	for from := 0; ; {
		i := bytes.Index(blob[from:], encoded)
		if i < 0 {
			return dst
		}
		start := ExtendedStart(blob, from+i)
		end := ExtendedEnd(blob, from+i)
		dst = appendTouched(dst, begin, start, end)
		from = end
	}
}

func appendTouched(dst []uint32, begin, start, end int) []uint32 {
	for s := start / SuperblockSize; s <= (end-1)/SuperblockSize; s++ {
		if n := len(dst); n == begin || dst[n-1] != uint32(s) {
			dst = append(dst, uint32(s))
		}
	}
	return dst
}

// ExtendedStart returns the start of the extended word that contains text[at:] or ends there.
func ExtendedStart(text []byte, at int) int {
	for at > 0 {
		switch {
		case wordByte[text[at-1]]:
			at--
		case bytes.HasSuffix(text[:at], kelvin):
			at -= len(kelvin)
		case bytes.HasSuffix(text[:at], longS):
			at -= len(longS)
		default:
			return at
		}
	}
	return 0
}

// ExtendedEnd returns the end of the extended word that continues at text[at:].
func ExtendedEnd(text []byte, at int) int {
	for at < len(text) {
		switch {
		case wordByte[text[at]]:
			at++
		case bytes.HasPrefix(text[at:], kelvin):
			at += len(kelvin)
		case bytes.HasPrefix(text[at:], longS):
			at += len(longS)
		default:
			return at
		}
	}
	return at
}

// WordBits sets bit i%64 of bits[i/64] if text[i] is a word byte, and clears the other bits of
// these elements. There is one for each 64 bytes or part of them. It returns the elements.
func WordBits(bits []uint64, text []byte) []uint64 { return bitsOf(bits, text, false) }

// bitsOf is WordBits, or, for a text of ASCII, the same for the bytes of isSpace. Those that are missing in the last 64 count as zeros.
func bitsOf(bits []uint64, text []byte, spaces bool) []uint64 {
	bits = bits[:(len(text)+63)/64]
	var last [64]byte
	for n := range bits {
		if len(text) < len(last) {
			copy(last[:], text)
			text = last[:]
		}
		word, part := uint64(0), text[:len(last)]
		for i := 0; i < len(part); i += 8 {
			x := binary.LittleEndian.Uint64(part[i:])
			marks := ^(x + (0x80-' '-1)*ones) & tops // the highest bit of each byte that counts
			if !spaces {
				marks = wordBytes(x)
			}
			// The multiplication moves each of them to its own place in the top byte.
			word |= marks >> 7 * 0x0102040810204080 >> 56 << i
		}
		bits[n], text = word, text[len(last):]
	}
	return bits
}

const ones, tops = 0x0101010101010101, 0x8080808080808080

// wordBytes returns the highest bit of each of eight bytes that is a word byte.
func wordBytes(x uint64) uint64 {
	low := x &^ tops
	letter := low | 0x20*ones
	found := (letter+(0x80-'a')*ones)&^(letter+(0x7f-'z')*ones) |
		(low+(0x80-'0')*ones)&^(low+(0x7f-'9')*ones) |
		^(low ^ '_'*ones + 0x7f*ones)
	return found &^ x & tops
}

// WordWindow returns the ID of the window of three word bytes, without case.
func WordWindow(a, b, c byte) ID { return ID(asciiWindow(a, b, c)) }
