package indextest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Sizes of the units of a text that an index distinguishes. Words are placed across their borders.
const (
	superblockSize = 4096
	blockSize      = 512
)

// Words makes a small corpus of things that an index of words gets wrong. It has words of the
// lengths from which on such an index omits them, and one byte less and more; words across the
// border of a block or superblock at every offset; words next to bytes that are not ASCII, not
// UTF-8, or fold to ASCII; one word in many cases, and within others; repetitive texts; words at
// the start and at the end of a text; texts without a word; base64, hexadecimal digits, minified
// code, very long lines, CRLF, CJK. Repos, branches, shared contents and skipped documents are as
// in Random. The same seed gives the same corpus.
func Words(seed uint64) *Corpus {
	m := maker{rng: rand.New(rand.NewPCG(seed, 4)), folders: wordFolders}
	m.vocabulary()
	m.content = m.wordContent
	for _, w := range m.words[:6] {
		m.fileNames = append(m.fileNames, w+".go", strings.ToUpper(w)+"_test.c", w)
	}
	return m.corpus(fmt.Sprintf("indextest.Words(%d)", seed))
}

// wordFolders have names of low priority among them.
var wordFolders = []string{"", "src/", "src/test/", "vendor/kelvin/", "tests/", "foo/"}

// stems become the words of a corpus. Some contain others.
var stems = []string{
	"foo", "bar", "foobar", "oo", "test", "tests", "testing", "latest", "contest", "get", "getParams", "Handler", "suspend", "task", "kick", "mass", "desks",
	"x", "i", "id", "aaaa", "nana", "abab", "x1", "0x1f", "42", "1234567", "_", "__init__", "k", "s", "sk", "CONFIG_SUSPEND", "http2Server", "réaumur", "straße",
}

// lengths are lengths of words at which something changes in an index or in its reader.
var lengths = []int{1, 2, 3, 31, 62, 63, 64, 65, 66, 127, 128, 129, 200, 255, 256, 257, 511, 512, 513, 5000}

// hugeWord is longer than all units of a text. It is rare, since it is slow.
const hugeWord = 200_000

// besides are texts that may be next to a word.
var besides = []string{
	"", "", " ", "\n", "\r\n", "-", ".", "(", "\t", "\xff", "\xc3", "\xe2\x84", "\xaa", "\u212A", "\u017F", "é", "日", "\u00a0", "😀", "\uFFFD", "_", "/", "\"",
}

var wordSeparators = []string{" ", " ", " ", " ", "\n", "\n", ".", "(", ") ", ", ", "->", "::", ":= ", "\t", "\r\n", "-", "\n\n"}

// vocabulary chooses the words of a corpus. They are few, so that each is in many texts.
func (m *maker) vocabulary() {
	for range 24 {
		w := pick(m, stems)
		switch m.rng.IntN(6) {
		case 0:
			w += pick(m, stems)
		case 1:
			w += "_" + pick(m, stems)
		case 2:
			w += fmt.Sprint(m.rng.IntN(200))
		}
		m.words = append(m.words, m.cased(w))
	}
}

// cased changes the case of a word, or of some letters of it.
func (m *maker) cased(w string) string {
	switch m.rng.IntN(8) {
	case 0:
		return strings.ToUpper(w)
	case 1:
		return strings.ToUpper(w[:1]) + w[1:]
	case 2:
		b := []byte(w)
		for i, c := range b {
			if m.chance(50) && ('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
				b[i] = c ^ 0x20
			}
		}
		return string(b)
	}
	return w
}

func (m *maker) aWord() string {
	w := pick(m, m.words)
	if m.chance(20) {
		w = m.cased(w)
	}
	return w
}

// wordContent returns a content of any size, mostly of a few hundred bytes.
func (m *maker) wordContent() []byte {
	switch m.rng.IntN(20) {
	case 0:
		return []byte{}
	case 1:
		return []byte(m.aWord())
	case 2:
		return []byte(strings.Repeat(pick(m, []string{"-- ", "日本語、", "\n", "\xff", "(.)", "\u00b7"}), m.rng.IntN(2000)))
	case 3, 4, 5:
		return m.acrossBorders()
	case 6, 7:
		return m.longWords()
	case 8:
		return m.repetitive()
	case 9, 10:
		return m.beside(300 + m.rng.IntN(5000))
	case 11:
		return m.minified(m.rng.IntN(12_000))
	case 12:
		return m.encoded(m.rng.IntN(6000))
	case 13:
		return m.ofWords(2000+m.rng.IntN(12_000), pick(m, []string{" ", "\r\n", "、"}))
	}
	return m.ofWords(m.rng.IntN(900), "")
}

// ofWords returns words and separators, or words with one given separator.
func (m *maker) ofWords(size int, separator string) []byte {
	var b []byte
	for len(b) < size {
		b = append(b, m.aWord()...)
		if separator != "" {
			b = append(b, separator...)
		} else {
			b = append(b, pick(m, wordSeparators)...)
		}
	}
	return b
}

// acrossBorders has a word at each border of superblocks or of blocks, each time starting one byte
// earlier before it.
func (m *maker) acrossBorders() []byte {
	unit := pick(m, []int{blockSize, blockSize, superblockSize})
	word := m.aWord()
	if m.chance(30) {
		word = pick(m, []string{"\u212Aelvin", "ta\u017Fk", "foo\u212A", "desk\u017F", "ſ", "K"})
	}
	if m.chance(20) {
		word = strings.Repeat(word, 1+70/len(word))
	}
	filler := pick(m, []string{" ", "~\n", "#", "-", "é ", "\xff", "x ", "foo "})
	before, after := pick(m, besides), pick(m, besides)
	first := m.rng.IntN(len(word) + 2)
	count := min(len(word)+2, 24)
	b := bytes.Repeat([]byte(filler), (count+1)*unit/len(filler)+1)
	for i := range count {
		at := (i+1)*unit - (first+i)%(len(word)+2)
		copy(b[max(0, at-len(before)):], before+word+after)
	}
	return b[:len(b)-m.rng.IntN(unit)]
}

// longWords returns words of lengths that an index may omit. Some have a common start or end.
func (m *maker) longWords() []byte {
	var b []byte
	unit := pick(m, []string{m.aWord(), "a", "ab", "foo", "X9_", "0123456789abcdef"})
	for range 1 + m.rng.IntN(10) {
		length := pick(m, lengths)
		if m.chance(50) {
			length = 1 + m.rng.IntN(64)
		}
		if m.chance(1) {
			length = hugeWord
		}
		word := []byte(strings.Repeat(unit, 1+length/len(unit)))[:length]
		if w := m.aWord(); m.chance(50) && len(w) < length {
			copy(word[pick(m, []int{0, length - len(w), m.rng.IntN(length - len(w))}):], w)
		}
		b = append(append(b, word...), pick(m, wordSeparators)...)
	}
	return b
}

// repetitive returns repetitions of a few letters: words within which a search starts again, and
// where matches must not overlap.
func (m *maker) repetitive() []byte {
	var b []byte
	for range 1 + m.rng.IntN(60) {
		b = append(b, strings.Repeat(pick(m, []string{"a", "aa", "ab", "aab", "na", "foo", "x1", "_", "11"}), 1+m.rng.IntN(12))...)
		b = append(b, pick(m, wordSeparators)...)
	}
	return b
}

// beside returns words directly next to bytes that are easily mistaken for parts of words.
func (m *maker) beside(size int) []byte {
	var b []byte
	for len(b) < size {
		w := m.aWord()
		if cut := m.rng.IntN(len(w) + 1); m.chance(15) {
			w = w[:cut] + pick(m, besides) + w[cut:]
		}
		if m.chance(20) {
			w = strings.NewReplacer("k", "\u212A", "s", "\u017F").Replace(w)
		}
		b = append(append(append(b, pick(m, besides)...), w...), pick(m, besides)...)
	}
	return b
}

// minified returns one line of short and long names with little between them.
func (m *maker) minified(size int) []byte {
	var b []byte
	for len(b) < size {
		b = fmt.Appendf(b, "%c%s%s%c", 'a'+rune(m.rng.IntN(4)), pick(m, []string{".", "=", "(", ",", "){", "+", ";"}), m.aWord(),
			pick(m, []rune{'(', ')', ',', ';', '{', '}'}))
	}
	return b
}

// encoded returns bytes in base64 or in hexadecimal digits.
func (m *maker) encoded(size int) []byte {
	digits := pick(m, []string{"0123456789abcdef", "0123456789ABCDEF", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"})
	width, b := pick(m, []int{2, 4, 8, 64, 76, size + 1}), make([]byte, 0, size)
	for len(b) < size {
		if b = append(b, digits[m.rng.IntN(len(digits))]); len(b)%(width+1) == width {
			b = append(b, pick(m, []byte{' ', '\n'}))
		}
	}
	return slices.Concat(b, []byte(pick(m, []string{"", "==", "\n"})))
}
