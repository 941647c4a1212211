package inverted

import (
	"bytes"
	"math/bits"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

// definedIn returns where defined words start in a blob, ascending.
func (b *WordBuilder) definedIn(blob []byte, language *symbols.Language) []uint32 {
	b.symbols, b.defined = language.Append(b.symbols[:0], blob), b.defined[:0]
	for _, found := range b.symbols {
		for at := found.Start; at < found.End; at++ {
			if ngram.IsWord(blob[at]) && (at == found.Start || !ngram.IsWord(blob[at-1])) {
				b.defined = append(b.defined, at)
			}
		}
	}
	return b.defined
}

// local has the distinct words of one superblock. A word occurs 2.4 times there on average, and the
// memory that counts them fits into the nearest cache.
type local struct {
	slots [localSlots]uint16 // number of a word, from 1
	words [MaxCount + 1]localWord
	n     int
}

const localSlots = 4096

type localWord struct {
	hash, head uint64
	start      uint32 // in the blob
	count      uint16
	size, mask uint8
	defined    bool
}

// blocksOf returns the number of blocks up to the last one in which any of the words starts.
func blocksOf(words []localWord) uint8 {
	all := uint8(0)
	for i := range words {
		all |= words[i].mask
	}
	return uint8(bits.Len8(all))
}

func (l *local) reset() {
	clear(l.slots[:])
	l.n = 0
}

// collect adds the words that start in the superblock at start. The table hashes them.
func (l *local) collect(t *wordTable, memory []uint64, blob []byte, start int) {
	before := uint64(0) // 1 if the byte before is a word byte
	if start > 0 && ngram.IsWord(blob[start-1]) {
		before = 1
	}
	end := min(start+ngram.SuperblockSize, len(blob))
	for i, word := range ngram.WordBits(memory, blob[start:end]) {
		at := start + i*64
		begins := word &^ (word<<1 | before)
		for ; begins != 0; begins &= begins - 1 {
			first := bits.TrailingZeros64(begins)
			size := bits.TrailingZeros64(^(word >> first))
			if first+size >= 64 { // it may continue in the next 64 bytes
				for size = 64 - first; at+first+size < len(blob) && ngram.IsWord(blob[at+first+size]); size++ {
				}
			}
			l.add(t, blob, at+first, size, uint8(1)<<((at-start)/ngram.BlockSize))
		}
		before = word >> 63
	}
}

// add counts the word blob[start:start+size].
func (l *local) add(t *wordTable, blob []byte, start, size int, mask uint8) {
	e := l.entry(t, blob, start, size)
	e.count++
	e.mask |= mask
}

// define marks the collected words that are defined, by the places where they start.
func (l *local) define(t *wordTable, blob []byte, places []uint32) {
	for _, at := range places {
		end := int(at)
		for end < len(blob) && ngram.IsWord(blob[end]) {
			end++
		}
		l.entry(t, blob, int(at), end-int(at)).defined = true
	}
}

// entry returns the entry of the word blob[start:start+size]. It makes one if there is none yet.
func (l *local) entry(t *wordTable, blob []byte, start, size int) *localWord {
	word := blob[start : start+size]
	first := head(blob[start:], size)
	hash := t.hash(word, first)
	for i := hash % localSlots; ; i = (i + 1) % localSlots {
		number := l.slots[i]
		if number == 0 {
			l.slots[i] = uint16(l.n + 1)
			l.words[l.n] = localWord{hash: hash, head: first, start: uint32(start), size: uint8(size)}
			l.n++
			return &l.words[l.n-1]
		}
		e := &l.words[number-1]
		if e.hash == hash && e.head == first && int(e.size) == size &&
			(size <= 8 || bytes.Equal(blob[e.start:e.start+uint32(size)], word)) {
			return e
		}
	}
}
