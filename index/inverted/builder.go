package inverted

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
)

// Sentinels for errors.Is.
var (
	// ErrFull means that the postings would exceed Config.MaxBytes: write the index and start
	// another one.
	ErrFull = errors.New("postings do not fit into the builder's memory")
	// ErrMisuse means that postings were not added as Builder.Add requires.
	ErrMisuse = errors.New("wrong use of a builder of postings")
)

// DefaultMaxBytes is the default bound on a Builder's pool. Source code takes about 0.9 bytes of it
// per byte, so this is enough for 2 GB.
const DefaultMaxBytes = 2 << 30

// Config configures a Builder. The zero value has the defaults.
type Config struct {
	// MaxBytes bounds the pool of postings; 0 means DefaultMaxBytes. Writing an index takes five
	// more bytes for each posting of the largest group of n-grams.
	MaxBytes int64
}

// Builder collects the postings of one n-gram index and writes it. Its memory is one pool of equal chunks,
// which Reset keeps for the next index. It is not safe for concurrent use.
type Builder struct {
	pool     ngramPool
	blocks   []uint8 // of each superblock: blocks up to the last one in which a term starts
	maxBytes int64
	postings uint64
	sorted   sortedGroup
}

// NewBuilder returns an empty Builder.
func NewBuilder(cfg Config) *Builder {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	return &Builder{maxBytes: cfg.MaxBytes}
}

// Add adds the n-grams of one superblock with the masks of the blocks in which they start.
// Superblocks come in ascending order, ids are distinct, and masks[i], which is not zero, belongs
// to ids[i]. If it returns an error, it has added nothing. The error is ErrFull if the memory is
// used up, and ErrMisuse if the arguments break these rules.
func (b *Builder) Add(superblock uint32, ids []ngram.ID, masks []uint8) error {
	if err := b.check(superblock, ids, masks); err != nil {
		return err
	}
	b.pool.add(superblock, ids, masks)
	b.skipTo(superblock)
	b.blocks = append(b.blocks, highestBlock(masks))
	b.postings += uint64(len(ids))
	return nil
}

// skipTo adds superblocks without n-grams.
func (b *Builder) skipTo(superblock uint32) {
	for uint32(len(b.blocks)) < superblock {
		b.blocks = append(b.blocks, 0)
	}
}

// highestBlock returns the number of blocks up to the last one in any mask.
func highestBlock(masks []uint8) uint8 {
	all := uint64(0)
	for ; len(masks) >= 8; masks = masks[8:] {
		all |= binary.LittleEndian.Uint64(masks)
	}
	all |= all >> 32
	all |= all >> 16
	all |= all >> 8
	for _, mask := range masks {
		all |= uint64(mask)
	}
	return uint8(bits.Len8(uint8(all)))
}

func (b *Builder) check(superblock uint32, ids []ngram.ID, masks []uint8) error {
	switch {
	case superblock < uint32(len(b.blocks)) || superblock >= MaxSuperblocks:
		return fmt.Errorf("%w: superblock %d is not in [%d, %d)", ErrMisuse, superblock, len(b.blocks), MaxSuperblocks)
	case len(ids) != len(masks):
		return fmt.Errorf("%w: %d n-grams with %d masks", ErrMisuse, len(ids), len(masks))
	case b.pool.mostMemory(len(ids)) > b.maxBytes:
		return fmt.Errorf("add %d postings to %d: %w", len(ids), b.postings, ErrFull)
	case bytes.IndexByte(masks, 0) >= 0:
		return fmt.Errorf("%w: an empty mask in superblock %d", ErrMisuse, superblock)
	case len(ids) > 0 && slices.Max(ids) >= ngram.Space:
		return fmt.Errorf("%w: n-gram %d is not below %d", ErrMisuse, slices.Max(ids), ngram.Space)
	}
	return nil
}

// Postings returns the number of postings added since the last Reset.
func (b *Builder) Postings() uint64 { return b.postings }

// MemoryUsed returns how many bytes of the pool are in use, at most Config.MaxBytes.
func (b *Builder) MemoryUsed() int64 { return b.pool.memory() }

// Reset drops all postings and keeps the memory.
func (b *Builder) Reset() {
	b.pool.reset()
	b.blocks, b.postings = b.blocks[:0], 0
}

// Write writes the index of a text of that many superblocks, which must be more than any that was
// added, as three sections. It holds them in memory until all are encoded. Afterwards, and after all errors except ErrMisuse, the Builder is as after Reset.
func (b *Builder) Write(w format.SectionWriter, tags Tags, superblocks uint32) error {
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
