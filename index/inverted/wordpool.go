package inverted

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

// An entry of a word has, from the lowest bit on: how often the word starts in the superblock,
// whether it is defined there, the mask of the blocks, the superblock, and the low bits of the word's
// number.
const (
	countBits    = 13
	definedShift = countBits
	maskShift    = definedShift + 1
	superblockAt = maskShift + 8
	_            = uint(numberAt - superblockAt - 32)
)

// wordPool has the postings of words.
type wordPool struct{ sortedPool }

func (p *wordPool) add(number, superblock uint32, mask uint8, count uint16, defined bool) {
	p.grow(int(number>>groupBits) + 1)
	entry := uint64(superblock)<<superblockAt | uint64(mask)<<maskShift | uint64(count)
	if defined {
		entry |= 1 << definedShift
	}
	p.sortedPool.add(number, entry)
}

// fetch reads the first posting of a word early, so that read need not wait for memory: see
// wordTable.fetch.
func (p *wordPool) fetch(number uint32) uint32 {
	g, start := &p.groups[number>>groupBits], p.starts[number]
	return uint32(g.chunks[start/chunkEntries][start%chunkEntries])
}

// read replaces the content of a run by the postings of a word.
func (p *wordPool) read(to *run, number uint32) {
	g, start, end := p.run(number)
	n := end - start
	to.superblocks, to.masks = slices.Grow(to.superblocks[:0], n)[:n], slices.Grow(to.masks[:0], n)[:n]
	to.counts, to.defined = slices.Grow(to.counts[:0], n)[:n], slices.Grow(to.defined[:0], n)[:n]
	rest := *to
	for entries := range g.parts(start, end) {
		n := len(entries)
		superblocks, masks, counts, defined := rest.superblocks[:n], rest.masks[:n], rest.counts[:n], rest.defined[:n]
		for i, entry := range entries {
			superblocks[i] = uint32(entry >> superblockAt)
			masks[i] = uint8(entry >> maskShift)
			counts[i] = uint16(entry % (1 << countBits))
			defined[i] = entry>>definedShift&1 == 1
		}
		rest = rest.part(n, len(rest.superblocks))
	}
}

// addTo adds the postings of a word to the sums of a part.
func (p *wordPool) addTo(sums *partSums, number uint32, matches partSum) error {
	g, start, end := p.run(number)
	for entries := range g.parts(start, end) {
		for _, entry := range entries {
			if !sums.add(uint32(entry>>superblockAt), matches, uint16(entry%(1<<countBits)), entry>>definedShift&1 == 1) {
				return errPartCount
			}
		}
	}
	return nil
}

// WordBuilder collects the words of blobs and writes their index. Reset keeps its memory for the next
// index. It is not safe for concurrent use.
type WordBuilder struct {
	table  wordTable
	pool   wordPool
	opaque []uint64
	blocks []uint8 // for each superblock, blocks up to the last one in which a word starts

	// Of one blob, or superblock.
	local   local
	bits    [ngram.SuperblockSize / 64]uint64
	symbols []symbols.Symbol
	defined []uint32

	fetched uint32 // never read: it keeps the compiler from removing early reads

	keys []sortKey
	run  run
}

// NewWordBuilder returns an empty WordBuilder.
func NewWordBuilder() *WordBuilder {
	return &WordBuilder{table: wordTable{slots: make([]slot, leastSlots), seed: rand.Uint64()}}
}

// Memory returns about how many bytes the words and their postings take.
func (b *WordBuilder) Memory() int64 { return b.table.memory() + b.pool.memory() }

// Reset forgets all blobs.
func (b *WordBuilder) Reset() {
	b.table.reset()
	b.pool.reset()
	b.opaque, b.blocks = b.opaque[:0], b.blocks[:0]
}

// Add adds the next blob. first is its first superblock. opaque are its opaque superblocks, counted
// from 0 in the blob, as ngram.AppendOpaque returns them. The rules of language find its
// definitions; nil finds none. An empty blob has no superblock.
func (b *WordBuilder) Add(first uint32, blob []byte, opaque []uint32, language *symbols.Language) error {
	if uint64(first) < uint64(len(b.blocks)) || first >= MaxSuperblocks {
		return fmt.Errorf("%w: superblock %d is not in [%d, %d)", ErrMisuse, first, len(b.blocks), MaxSuperblocks)
	}
	b.blocks = append(b.blocks, make([]uint8, first-uint32(len(b.blocks)))...)
	defined := b.definedIn(blob, language)
	for start := 0; start < len(blob); start += ngram.SuperblockSize {
		superblock := first + uint32(start/ngram.SuperblockSize)
		n := 0
		for n < len(defined) && int(defined[n]) < start+ngram.SuperblockSize {
			n++
		}
		here := defined[:n]
		defined = defined[n:]
		if len(opaque) > 0 && first+opaque[0] == superblock {
			opaque, b.opaque, b.blocks = opaque[1:], append(b.opaque, uint64(superblock)), append(b.blocks, 0)
			continue
		}
		b.local.reset()
		b.local.collect(&b.table, b.bits[:], blob, start)
		b.local.define(&b.table, blob, here)
		words := b.local.words[:b.local.n]
		for i := range words {
			b.fetched += b.table.fetch(uint32(words[i].hash))
		}
		for i := range words {
			w := &words[i]
			number := b.table.add(uint32(w.hash), blob[w.start:w.start+uint32(w.size)])
			b.pool.add(number, superblock, w.mask, w.count, w.defined)
		}
		b.blocks = append(b.blocks, blocksOf(words))
	}
	return nil
}
