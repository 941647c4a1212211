package inverted

import (
	"fmt"

	"github.com/trawl-search/trawl/index/symbols"
)

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
