package inverted

import (
	"fmt"
	"slices"

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
	numberAt     = superblockAt + 32
)

// wordPool has the postings of words: a run of entries for each, once they are sorted.
type wordPool struct {
	pool[uint64]
	starts []uint32 // start of each word's run in its group
	sorted []uint64
}

func (p *wordPool) add(number, superblock uint32, mask uint8, count uint16, defined bool) {
	p.grow(int(number>>groupBits) + 1)
	g := &p.groups[number>>groupBits]
	at := g.n % chunkEntries
	if at == 0 {
		p.extend(g)
	}
	entry := uint64(number%groupSize)<<numberAt | uint64(superblock)<<superblockAt | uint64(mask)<<maskShift | uint64(count)
	if defined {
		entry |= 1 << definedShift
	}
	g.last[at] = entry
	g.n++
}

// sort sorts the entries of that many words by word, group by group, in place. Their superblocks
// ascend already.
func (p *wordPool) sort(words int) {
	p.starts = slices.Grow(p.starts[:0], words)[:words]
	for i := range p.groups {
		g, starts := &p.groups[i], p.starts[i*groupSize:min((i+1)*groupSize, words)]
		if len(p.sorted) < g.n {
			p.sorted = make([]uint64, g.n+g.n/4)
		}
		g.count(starts)
		for part := range g.parts(0, g.n) {
			for _, entry := range part {
				at := &starts[entry>>numberAt]
				p.sorted[*at] = entry
				*at++
			}
		}
		rest := p.sorted
		for part := range g.parts(0, g.n) {
			rest = rest[copy(part, rest):]
		}
		copy(starts[1:], starts) // the end of a run is the start of the next one
		starts[0] = 0
	}
}

// fetch reads the first posting of a word early, so that read need not wait for memory: see
// wordTable.fetch.
func (p *wordPool) fetch(number uint32) uint32 {
	g, start := &p.groups[number>>groupBits], p.starts[number]
	return uint32(g.chunks[start/chunkEntries][start%chunkEntries])
}

// read replaces the content of a run by the postings of a word.
func (p *wordPool) read(to *run, number uint32) {
	g := &p.groups[number>>groupBits]
	start, end := int(p.starts[number]), g.n
	if next := number + 1; next%groupSize != 0 && int(next) < len(p.starts) {
		end = int(p.starts[next])
	}
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

// WordBuilder collects the words of blobs and writes their index. Reset keeps its memory for the next
// index. It is not safe for concurrent use.
type WordBuilder struct {
	scanner wordScanner
	table   wordTable
	pool    wordPool
	opaque  []uint64
	blocks  []uint8 // for each superblock, blocks up to the last one in which a word starts

	fetched uint32 // never read: it keeps the compiler from removing early reads

	keys []sortKey
	run  run
}

// NewWordBuilder returns an empty WordBuilder.
func NewWordBuilder() *WordBuilder { return &WordBuilder{table: newWordTable()} }

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
	b.scanner.scan(&b.table, blob, opaque, language, func(superblock uint32, words []localWord, opaque bool) {
		if superblock += first; opaque {
			b.opaque = append(b.opaque, uint64(superblock))
		}
		for i := range words {
			b.fetched += b.table.fetch(uint32(words[i].hash))
		}
		for i := range words {
			w := &words[i]
			number := b.table.add(uint32(w.hash), blob[w.start:w.start+uint32(w.size)])
			b.pool.add(number, superblock, w.mask, w.count, w.defined)
		}
		b.blocks = append(b.blocks, blocksOf(words))
	})
	return nil
}
