package inverted

import (
	"bytes"
	"fmt"
	"math/bits"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

// WordBuilder collects the words of blobs and writes their index. Reset keeps its memory for the next
// index. It is not safe for concurrent use.
type WordBuilder struct {
	table  wordTable
	pool   wordPool
	local  local
	starts []uint64 // words before each blob, including those of opaque superblocks
	opaque []uint64
	blocks []uint8 // for each superblock, blocks up to the last one in which a word starts
	words  uint64
	bits   [ngram.SuperblockSize / 64]uint64

	fetched uint32 // never read: it keeps the compiler from removing early reads

	definitions definitionFinder
	keys        []sortKey
	run         run
}

// NewWordBuilder returns an empty WordBuilder.
func NewWordBuilder() *WordBuilder { return &WordBuilder{table: newWordTable()} }

// Words returns the number of distinct words so far.
func (b *WordBuilder) Words() int { return b.table.len() }

// Memory returns about how many bytes the words and their postings take.
func (b *WordBuilder) Memory() int64 { return b.table.memory() + b.pool.memory() }

// Reset forgets all blobs.
func (b *WordBuilder) Reset() {
	b.table.reset()
	b.pool.reset()
	b.starts, b.opaque, b.blocks, b.words = b.starts[:0], b.opaque[:0], b.blocks[:0], 0
}

// Add adds the next blob. first is its first superblock. opaque are its opaque superblocks, counted
// from 0 in the blob, as ngram.AppendOpaque returns them. The rules of language find its
// definitions; nil finds none. An empty blob has no superblock.
func (b *WordBuilder) Add(first uint32, blob []byte, opaque []uint32, language *symbols.Language) error {
	if uint64(first) < uint64(len(b.blocks)) || first >= MaxSuperblocks {
		return fmt.Errorf("%w: superblock %d is not in [%d, %d)", ErrMisuse, first, len(b.blocks), MaxSuperblocks)
	}
	b.starts = append(b.starts, b.words)
	defined := b.definitions.of(blob, language)
	for uint32(len(b.blocks)) < first {
		b.blocks = append(b.blocks, 0)
	}
	for start := 0; start < len(blob); start += ngram.SuperblockSize {
		superblock := uint32(start / ngram.SuperblockSize)
		here, rest := upTo(defined, start+ngram.SuperblockSize)
		defined = rest
		if len(opaque) > 0 && opaque[0] == superblock {
			opaque = opaque[1:]
			b.opaque = append(b.opaque, uint64(first+superblock))
			b.words += countWords(b.bits[:], blob, start)
			b.blocks = append(b.blocks, 0)
			continue
		}
		b.local.reset()
		b.words += b.local.collect(&b.table, b.bits[:], blob, start)
		b.local.define(&b.table, blob, here)
		b.blocks = append(b.blocks, b.flush(first+superblock, blob))
	}
	return nil
}

// definitionFinder finds where defined words start in a blob. It reuses its memory.
type definitionFinder struct {
	found  []symbols.Symbol
	places []uint32
}

// of returns the places, ascending.
func (d *definitionFinder) of(blob []byte, language *symbols.Language) []uint32 {
	d.found = language.Append(d.found[:0], blob)
	d.places = d.places[:0]
	for _, s := range d.found {
		for at := s.Start; at < s.End; at++ {
			if ngram.IsWord(blob[at]) && (at == s.Start || !ngram.IsWord(blob[at-1])) {
				d.places = append(d.places, at)
			}
		}
	}
	return d.places
}

// upTo splits ascending places into those before end and the rest.
func upTo(places []uint32, end int) (before, rest []uint32) {
	n := 0
	for n < len(places) && int(places[n]) < end {
		n++
	}
	return places[:n], places[n:]
}

// countWords returns how many words start in the superblock at start. memory has room for the bits
// of a superblock.
func countWords(memory []uint64, blob []byte, start int) (words uint64) {
	before := wordBefore(blob, start)
	for _, word := range ngram.WordBits(memory, blob[start:min(start+ngram.SuperblockSize, len(blob))]) {
		words += uint64(bits.OnesCount64(word &^ (word<<1 | before)))
		before = word >> 63
	}
	return words
}

// wordBefore returns 1 if the byte before start is a word byte, otherwise 0.
func wordBefore(blob []byte, start int) uint64 {
	if start > 0 && ngram.IsWord(blob[start-1]) {
		return 1
	}
	return 0
}

// flush passes on the words of a superblock, and returns the number of blocks up to the last one in
// which a word starts.
func (b *WordBuilder) flush(superblock uint32, blob []byte) uint8 {
	all := uint8(0)
	entries := b.local.entries[:b.local.n]
	for i := range entries {
		b.fetched += b.table.fetch(uint32(entries[i].hash))
	}
	for i := range entries {
		e := &entries[i]
		number := b.table.add(uint32(e.hash), blob[e.start:e.start+uint32(e.size)])
		b.pool.add(number, superblock, e.mask, e.count, e.defined)
		all |= e.mask
	}
	return uint8(bits.Len8(all))
}

// local has the distinct words of one superblock. A word occurs 2.4 times there on average, and the
// memory that counts them fits into the nearest cache.
type local struct {
	slots   [localSlots]uint16 // number of an entry, from 1
	entries [MaxCount + 1]localWord
	n       int
}

const localSlots = 4096

type localWord struct {
	hash, head uint64
	start      uint32 // in the blob
	count      uint16
	size, mask uint8
	defined    bool
}

func (l *local) reset() {
	clear(l.slots[:])
	l.n = 0
}

// collect adds the words that start in the superblock at start, and returns their number. The table
// hashes them.
func (l *local) collect(t *wordTable, memory []uint64, blob []byte, start int) (words uint64) {
	before := wordBefore(blob, start)
	end := min(start+ngram.SuperblockSize, len(blob))
	for i, word := range ngram.WordBits(memory, blob[start:end]) {
		at := start + i*64
		begins := word &^ (word<<1 | before)
		words += uint64(bits.OnesCount64(begins))
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
	return words
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
			l.entries[l.n] = localWord{hash: hash, head: first, start: uint32(start), size: uint8(size)}
			l.n++
			return &l.entries[l.n-1]
		}
		e := &l.entries[number-1]
		if e.hash == hash && e.head == first && int(e.size) == size &&
			(size <= 8 || bytes.Equal(blob[e.start:e.start+uint32(size)], word)) {
			return e
		}
	}
}
