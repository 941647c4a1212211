package inverted

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
)

// ErrMisuse means that postings were not added as NgramBuilder.Add requires.
var ErrMisuse = errors.New("wrong use of a builder of postings")

// NgramBuilder collects the postings of one n-gram index and writes it. Its memory is one pool of equal chunks,
// which Reset keeps for the next index. It is not safe for concurrent use.
type NgramBuilder struct {
	pool     ngramPool
	blocks   []uint8 // of each superblock: blocks up to the last one in which a term starts
	postings uint64
	sorted   sortedGroup
}

// NewNgramBuilder returns an empty NgramBuilder.
func NewNgramBuilder() *NgramBuilder { return &NgramBuilder{} }

// Add adds the n-grams of one superblock with the masks of the blocks in which they start.
// Superblocks come in ascending order, ids are distinct, and masks[i], which is not zero, belongs
// to ids[i]. If the arguments break these rules, the error is ErrMisuse, and nothing was added.
func (b *NgramBuilder) Add(superblock uint32, ids []ngram.ID, masks []uint8) error {
	if err := b.check(superblock, ids, masks); err != nil {
		return err
	}
	b.pool.add(superblock, ids, masks)
	b.skipTo(superblock)
	all := uint8(0)
	for _, mask := range masks {
		all |= mask
	}
	b.blocks = append(b.blocks, uint8(bits.Len8(all)))
	b.postings += uint64(len(ids))
	return nil
}

// Adder returns a function that adds the n-grams of a text, as an ngram.Extractor emits them. The superblocks of the text begin with
// first. The first error stays in err, and nothing is added after it.
func (b *NgramBuilder) Adder(first uint32, err *error) func(superblock uint32, ids []ngram.ID, masks []uint8) {
	return func(superblock uint32, ids []ngram.ID, masks []uint8) {
		if *err == nil {
			*err = b.Add(first+superblock, ids, masks)
		}
	}
}

// skipTo adds superblocks without n-grams.
func (b *NgramBuilder) skipTo(superblock uint32) {
	b.blocks = append(b.blocks, make([]uint8, superblock-uint32(len(b.blocks)))...)
}

func (b *NgramBuilder) check(superblock uint32, ids []ngram.ID, masks []uint8) error {
	switch {
	case superblock < uint32(len(b.blocks)) || superblock >= MaxSuperblocks:
		return fmt.Errorf("%w: superblock %d is not in [%d, %d)", ErrMisuse, superblock, len(b.blocks), MaxSuperblocks)
	case len(ids) != len(masks):
		return fmt.Errorf("%w: %d n-grams with %d masks", ErrMisuse, len(ids), len(masks))
	case bytes.IndexByte(masks, 0) >= 0:
		return fmt.Errorf("%w: an empty mask in superblock %d", ErrMisuse, superblock)
	case len(ids) > 0 && slices.Max(ids) >= ngram.Space:
		return fmt.Errorf("%w: n-gram %d is not below %d", ErrMisuse, slices.Max(ids), ngram.Space)
	}
	return nil
}

// Postings returns the number of postings added since the last Reset.
func (b *NgramBuilder) Postings() uint64 { return b.postings }

// MemoryUsed returns how many bytes the postings take.
func (b *NgramBuilder) MemoryUsed() int64 { return b.pool.memory() }

// Reset drops all postings and keeps the memory.
func (b *NgramBuilder) Reset() {
	b.pool.reset()
	b.blocks, b.postings = b.blocks[:0], 0
}

// Write writes the index of a text of that many superblocks, which must be more than any that was
// added, as two sections. It holds them in memory until all are encoded. Afterwards, and after all errors except ErrMisuse, the NgramBuilder is as after Reset.
func (b *NgramBuilder) Write(w format.SectionWriter, tags Tags, superblocks uint32) error {
	if superblocks < uint32(len(b.blocks)) || superblocks > MaxSuperblocks {
		return fmt.Errorf("%w: an index of %d superblocks that already has %d", ErrMisuse, superblocks, len(b.blocks))
	}
	defer b.Reset()
	b.skipTo(superblocks)
	lists := newWriter(tags, b.blocks, inMemory)
	for number := range b.pool.groups {
		if b.pool.groups[number].n == 0 {
			continue
		}
		b.sorted.sort(&b.pool, number)
		start := uint32(0)
		for i, end := range &b.sorted.ends {
			if start < end {
				lists.table.addNgram(uint64(number*groupSize + i))
				if err := lists.append(&run{superblocks: b.sorted.superblocks[start:end], masks: b.sorted.masks[start:end]}); err != nil {
					return err
				}
				start = end
			}
		}
	}
	return lists.write(w)
}
