package inverted

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/trawl-search/trawl/index/ngram"
)

// A block of the term dictionary has BlockWords words: the spelling of each in two bits, and then each word
// in lower case, as the number of bytes that it shares with the word before and the bytes that
// follow.
const (
	// BlockWords is the number of words in each block of the term dictionary except the last one.
	BlockWords = 32

	longNibble = 15 // the excess is in the byte that follows
	caseGroup  = 63 // bytes of a word that each number of capitals covers
)

// Spellings of a word.
const (
	spelledSmall   = iota // without capitals
	spelledTitle          // its first byte is its only capital
	spelledCapital        // all letters are capitals
	spelledOther          // numbers say which bytes are capitals
)

var errBlock = errors.New("a block of words ends too early, or has a word that is too long or not the next one")

// blockWriter collects a block of words.
type blockWriter struct {
	spellings [BlockWords / 4]uint8
	entries   []byte
	last      []byte // the word before, in lower case
	n         int
}

// add adds the next word.
func (b *blockWriter) add(word []byte) {
	shared := 0
	for shared < min(len(word), len(b.last)) && lower[word[shared]] == b.last[shared] {
		shared++
	}
	suffix := len(word) - shared
	b.entries = append(b.entries, uint8(min(shared, longNibble)|min(suffix, longNibble)<<4))
	if shared >= longNibble {
		b.entries = append(b.entries, uint8(shared-longNibble))
	}
	if suffix >= longNibble {
		b.entries = append(b.entries, uint8(suffix-longNibble))
	}
	b.last = b.last[:shared]
	for _, c := range word[shared:] {
		b.last = append(b.last, lower[c])
	}
	b.entries = append(b.entries, b.last[shared:]...)
	spelling := spellingOf(word)
	b.spellings[b.n/4] |= spelling << (b.n % 4 * 2)
	if spelling == spelledOther {
		b.entries = appendCapitals(b.entries, word)
	}
	b.n++
}

// spellingOf returns the spelling of a word; if two fit, the first one.
func spellingOf(word []byte) uint8 {
	capitals, small := 0, 0
	for _, c := range word {
		if c != lower[c] {
			capitals++
		} else if 'a' <= c && c <= 'z' {
			small++
		}
	}
	switch {
	case capitals == 0:
		return spelledSmall
	case capitals == 1 && word[0] != lower[word[0]]:
		return spelledTitle
	case small == 0:
		return spelledCapital
	}
	return spelledOther
}

// appendCapitals appends one number for each caseGroup bytes of a word, with one bit for each
// capital.
func appendCapitals(dst, word []byte) []byte {
	for ; len(word) > 0; word = word[min(len(word), caseGroup):] {
		group := uint64(0)
		for i, c := range word[:min(len(word), caseGroup)] {
			if c != lower[c] {
				group |= 1 << i
			}
		}
		dst = binary.AppendUvarint(dst, group)
	}
	return dst
}

// appendTo appends the block and starts the next one.
func (b *blockWriter) appendTo(dst []byte) []byte {
	dst = append(dst, b.spellings[:(b.n+3)/4]...)
	dst = append(dst, b.entries...)
	*b = blockWriter{entries: b.entries[:0], last: b.last[:0]}
	return dst
}

// Block is a block of the term dictionary. Its memory can be reused for other blocks.
type Block struct {
	// First is the number of the first word. Text has all words, each followed by a newline.
	First uint32
	Text  []byte

	ends [BlockWords]uint16 // end of each word in Text
	n    int
}

// Len returns the number of words, at most BlockWords.
func (b *Block) Len() int { return b.n }

// Word returns word i of the block, from 0.
func (b *Block) Word(i int) []byte {
	start := 0
	if i > 0 {
		start = int(b.ends[i-1]) + 1
	}
	return b.Text[start:b.ends[i]]
}

// At returns the index of the word that Text[at] belongs to. It is at least from.
func (b *Block) At(at, from int) int {
	for int(b.ends[from]) < at {
		from++
	}
	return from
}

// blockText is the room for the text of a block and for copies beyond its end.
const blockText = BlockWords*(ngram.MaxWord+1) + shortCopy

// decode decodes a block of n words, either spelled or in lower case. Words of a sound block have
// at most ngram.MaxWord bytes, all of them word bytes.
func (b *Block) decode(data []byte, n int, spelled bool) error {
	b.Text, b.n = b.Text[:0], 0
	spellings := (n + 3) / 4
	if len(data) < spellings {
		return errBlock
	}
	if cap(b.Text) < blockText {
		b.Text = make([]byte, 0, blockText)
	}
	text, entries := b.Text[:blockText], data[spellings:]
	var capitals [BlockWords]uint16 // where the data has the capitals of a word
	last, at := 0, 0
	for i := range n {
		shared, suffix, rest, ok := readHead(entries)
		size := shared + suffix
		if !ok || size > ngram.MaxWord || size == 0 || suffix > len(rest) || shared > max(at-1-last, 0) {
			return errBlock
		}
		copyShort(text[at:], text[last:], shared)
		copyShort(text[at+shared:], rest, suffix)
		entries = rest[suffix:]
		capitals[i] = uint16(len(data) - len(entries))
		if data[i/4]>>(i%4*2)&3 == spelledOther {
			var err error
			if entries, err = passCapitals(size, entries); err != nil {
				return err
			}
		}
		last = at
		at += size
		b.ends[i] = uint16(at)
		text[at] = '\n'
		at++
	}
	b.Text, b.n = text[:at], n
	if spelled {
		for i := range n {
			capitalize(b.Word(i), data[i/4]>>(i%4*2)&3, data[capitals[i]:])
		}
	}
	return nil
}

// shortCopy is the number of bytes that copyShort copies at once.
const shortCopy = 16

// copyShort is copy for n bytes, which are usually few. It may change up to shortCopy bytes of to.
func copyShort(to, from []byte, n int) {
	if n <= shortCopy && len(from) >= shortCopy {
		*(*[shortCopy]byte)(to) = [shortCopy]byte(from)
	} else {
		copy(to[:n], from)
	}
}

// readHead reads how many bytes a word shares with the one before, and how many follow.
func readHead(entries []byte) (shared, suffix int, rest []byte, ok bool) {
	if len(entries) == 0 {
		return 0, 0, nil, false
	}
	shared, suffix, rest = int(entries[0]&longNibble), int(entries[0]>>4), entries[1:]
	for _, length := range []*int{&shared, &suffix} {
		if *length != longNibble {
			continue
		}
		if len(rest) == 0 {
			return 0, 0, nil, false
		}
		*length, rest = *length+int(rest[0]), rest[1:]
	}
	return shared, suffix, rest, true
}

// capitalize spells a word given in lower case; passCapitals has skipped the capitals.
func capitalize(word []byte, spelling uint8, capitals []byte) {
	switch spelling {
	case spelledTitle:
		word[0] = upper(word[0])
	case spelledCapital:
		for i, c := range word {
			word[i] = upper(c)
		}
	case spelledOther:
		for ; len(word) > 0; word = word[min(len(word), caseGroup):] {
			group, n := binary.Uvarint(capitals)
			capitals = capitals[n:]
			for group &= 1<<min(len(word), caseGroup) - 1; group != 0; group &= group - 1 {
				i := bits.TrailingZeros64(group)
				word[i] = upper(word[i])
			}
		}
	}
}

// passCapitals returns the data after the capitals of a word of size bytes.
func passCapitals(size int, entries []byte) ([]byte, error) {
	for ; size > 0; size -= caseGroup {
		_, n := binary.Uvarint(entries)
		if n <= 0 {
			return nil, errBlock
		}
		entries = entries[n:]
	}
	return entries, nil
}

func upper(c uint8) uint8 {
	if 'a' <= c && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}
