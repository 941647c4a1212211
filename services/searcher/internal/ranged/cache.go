// Package ranged serves shards that are not on disk as a whole. It downloads the blocks
// that a search reads, and keeps them in a sparse file while the disk budget has room.
//
//	search ──▶ view ── copies bytes ◀── block on the disk
//	                       ▲
//	                       └── flight: one ranged read of adjacent blocks into memory,
//	                           for all who want them ──▶ room from the budget, by
//	                           eviction (S3-FIFO) ──▶ blocks on the disk
//
// A search copies what it reads, so a block may be evicted at any time, and a block for which there is no
// room is used from memory. No search waits for room, and none fails for want of it.
//
// The tail of a shard, which says where everything else is, is in place: on the disk while the shard is
// open, or in the memory of each search if the disk has no room for it. Package format verifies the checksums
// of all bytes each time a search reads them.
package ranged

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// Object names a shard in the bucket.
type Object struct {
	// Name is for errors.
	Name string
	Key  string
	// Size in bytes.
	Size int64
}

const (
	// fetches is how many ranged reads run at once, over all searches.
	fetches = 256
	// The searches hold at most mostMemory bytes of blocks together, or GOMEMLIMIT/processShare if that is less, and one holds a
	// searchShare'th of that. Each may have the blocks of one ranged read more than its share, and what it is copying.
	mostMemory   = 512 << 20
	processShare = 4
	searchShare  = 4
	// tailShare is the divisor of the disk budget that the tails of shards may take.
	tailShare = 2
	// tailsInMemory is how many searches at once may have a tail in memory for which the disk has no room. The others wait.
	tailsInMemory = 4
)

// Cache holds blocks of shards. It is safe for concurrent use.
type Cache struct {
	dir   string
	grain int64 // bytes of a block
	// memory is how many bytes of blocks the searches hold together, and searchMemory how many one holds.
	memory, searchMemory int

	bucket  bucket.Bucket
	budget  *disk.Budget
	log     *slog.Logger
	metrics *Metrics

	life    context.Context
	end     context.CancelFunc
	flights sync.WaitGroup
	slots   chan struct{} // a token for each ranged read
	inMind  chan struct{} // a token for each tail in memory

	mu    sync.Mutex
	fifo  fifo
	views int   // open
	tails int64 // bytes on disk
}

// New makes a cache over a folder that exists. It must be closed.
func New(dir string, b bucket.Bucket, budget *disk.Budget, log *slog.Logger, m *Metrics) *Cache {
	memory := int(min(mostMemory, debug.SetMemoryLimit(-1)/processShare))
	c := &Cache{
		dir: dir, grain: blockSize, memory: memory, searchMemory: memory / searchShare, bucket: b, budget: budget, log: log, metrics: m,
		slots: make(chan struct{}, fetches), inMind: make(chan struct{}, tailsInMemory),
	}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// Close cancels the running reads and waits for their end. Searches that still need
// blocks get an error.
func (c *Cache) Close() {
	c.end()
	c.flights.Wait()
}

// Reserve takes bytes from the budget, and evicts blocks if it must. It reports whether it succeeded: the tails of open shards
// stay. It frees and takes a piece at a time, as no search can read a block meanwhile.
func (c *Cache) Reserve(n int64) bool {
	if limit := c.budget.Limit(); limit > 0 && n > limit {
		return false
	}
	for taken := int64(0); taken < n; {
		piece := min(n-taken, longestRun*c.grain)
		c.mu.Lock()
		ok := c.reserve(piece)
		c.mu.Unlock()
		if !ok {
			c.budget.Give(taken)
			return false
		}
		taken += piece
	}
	return true
}

// reserve needs mu.
func (c *Cache) reserve(n int64) bool {
	if limit := c.budget.Limit(); limit > 0 && n > limit {
		return false
	}
	for !c.budget.Take(n) {
		if !c.evict() {
			return false
		}
	}
	return true
}

// evict frees one block's space. Space that cannot be freed stays charged to the budget
// as long as the file exists. Callers hold mu.
func (c *Cache) evict() bool {
	b, g := c.fifo.evict()
	if b == nil {
		return false
	}
	b.object.slots[b.number] = slot{ghost: g}
	c.metrics.evictions.Inc()
	c.metrics.blocks.Sub(float64(b.size))
	c.punch(b.object, b.number, b.number)
	return true
}

// punch frees the space of the blocks from first to last. Callers hold mu.
func (c *Cache) punch(o *object, first, last uint32) {
	off, n := o.span(first, last)
	n = disk.Rounded(n)
	if err := disk.Punch(o.file, off, n); err != nil {
		o.stuck += n
		c.complain(o, err)
		return
	}
	c.budget.Give(n)
}

// complain logs that the disk failed, once for an object: it may fail for each block. Callers hold mu.
func (c *Cache) complain(o *object, err error) {
	if !o.complained {
		c.log.Error("keep parts of a shard on the disk", "shard", o.Name, "error", err)
	}
	o.complained = true
}

// leave ends one reference of an object. The last one removes its file, without the lock.
func (c *Cache) leave(o *object) {
	c.mu.Lock()
	o.refs--
	last := o.refs == 0 && o.file != nil
	var taken int64
	if last {
		taken = c.forget(o)
	}
	c.mu.Unlock()
	if !last {
		return
	}
	if err := o.remove(); err != nil {
		c.log.Error("remove the blocks of a shard", "shard", o.Name, "error", err)
		return // what may still be on disk stays taken
	}
	c.budget.Give(taken)
}

// forget drops the blocks of an object and returns what its file takes on the disk. Callers hold mu.
func (c *Cache) forget(o *object) (taken int64) {
	taken = overhead(o.Size, o.grain) + o.stuck
	for i := range o.slots {
		if b := o.slots[i].block; b != nil {
			c.fifo.drop(b)
			c.metrics.blocks.Sub(float64(b.size))
			taken += int64(b.size)
		}
	}
	if o.placed {
		taken += o.tailSize()
		c.tails -= o.tailSize()
	}
	o.slots = nil
	return taken
}
