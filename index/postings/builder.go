package postings

import (
	"errors"
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/index/ngram"
)

// Sentinels for errors.Is.
var (
	// ErrFull means that the postings would pass Config.MaxBytes: write the index
	// and start another one.
	ErrFull = errors.New("postings do not fit into the builder's memory")
	// ErrMisuse means that postings were not added as Builder.Add asks for.
	ErrMisuse = errors.New("wrong use of a builder of postings")
)

// DefaultMaxBytes bounds a Builder's pool by default. Source code takes about 0.7
// bytes of it for each of its own, so that this is enough for 3 GB.
const DefaultMaxBytes = 2 << 30

// Config sets up a Builder. The zero value has the defaults.
type Config struct {
	// MaxBytes bounds the pool that postings are collected in; 0 means
	// DefaultMaxBytes. The builder's own tables take about 20 MB in addition.
	MaxBytes int64
}

// Builder collects the postings of one index and writes it. Its memory is one
// pool of equal chunks and tables indexed by n-gram, all kept by Reset for the
// next index. One goroutine at a time.
type Builder struct {
	chains   [ngram.Space]chain
	pool     chunkPool
	maxUnits uint32
	next     uint32 // least superblock to come
	postings uint64

	scratch scratch
}

// NewBuilder makes an empty Builder.
func NewBuilder(cfg Config) *Builder {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	return &Builder{maxUnits: uint32(min(cfg.MaxBytes/unitSize, 1<<32-slabUnits))}
}

// Add adds the n-grams of one superblock with the masks of the blocks in which they
// start. Superblocks come in ascending order, ids are distinct, and masks[i], which is not
// zero, belongs to ids[i]. After an error nothing was added. It is ErrFull when the
// memory bound is reached, and ErrMisuse when the arguments are not as said here.
func (b *Builder) Add(superblock uint32, ids []ngram.ID, masks []uint8) error {
	if err := b.check(superblock, ids, masks); err != nil {
		return err
	}
	for i, id := range ids {
		b.chains[id].add(&b.pool, superblock, masks[i])
	}
	b.next = superblock + 1
	b.postings += uint64(len(ids))
	return nil
}

func (b *Builder) check(superblock uint32, ids []ngram.ID, masks []uint8) error {
	switch {
	case superblock < b.next || superblock >= MaxSuperblocks:
		return fmt.Errorf("%w: superblock %d is not in [%d, %d)", ErrMisuse, superblock, b.next, MaxSuperblocks)
	case len(ids) != len(masks):
		return fmt.Errorf("%w: %d n-grams with %d masks", ErrMisuse, len(ids), len(masks))
	case !b.fits(len(ids)):
		return fmt.Errorf("add %d postings to %d: %w", len(ids), b.postings, ErrFull)
	case slices.Contains(masks, 0):
		return fmt.Errorf("%w: an empty mask in superblock %d", ErrMisuse, superblock)
	case len(ids) > 0 && slices.Max(ids) >= ngram.Space:
		return fmt.Errorf("%w: n-gram %d is not below %d", ErrMisuse, slices.Max(ids), ngram.Space)
	}
	return nil
}

// fits reports whether there is memory for n postings, even if each takes a large
// chunk and slabs end with a rest that no chunk fits into.
func (b *Builder) fits(n int) bool {
	need := uint64(n) * largeUnits
	need += (need/slabUnits + 1) * (largeUnits - 1)
	return uint64(b.pool.used)+need <= uint64(b.maxUnits)
}

// Postings is the number of postings added since the last Reset.
func (b *Builder) Postings() uint64 { return b.postings }

// MemoryUsed is the bytes of the pool in use, at most Config.MaxBytes.
func (b *Builder) MemoryUsed() int64 { return int64(b.pool.used) * unitSize }

// Reset forgets all postings and keeps the memory.
func (b *Builder) Reset() {
	clear(b.chains[:])
	b.pool.reset()
	b.next, b.postings = 0, 0
}
