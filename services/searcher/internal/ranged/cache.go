// Package ranged serves shards that are not on disk as a whole. It downloads the blocks
// that a search reads into a sparse file, and keeps them while the disk budget has room.
//
//	search ──▶ view ── reads bytes ──▶ fill ──▶ block there: pinned by the view
//	                                     │
//	                                     ▼ not there
//	                 room from the budget, by eviction (S3-FIFO) ──▶ flight: one
//	                 ranged read of adjacent blocks, for all who want them
//
// Each search has its own view, which pins the blocks that it has read until it ends, so
// that they are not evicted. Package format verifies the checksums of downloaded bytes
// each time a view first reads them.
package ranged

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/wait"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// ErrNoRoom means that a search needs more of a shard at once than the disk
// budget, or the disk, has room for.
var ErrNoRoom = errors.New("no space for the parts of the shard that this needs at once")

// Object names a shard in the bucket.
type Object struct {
	// Name is for errors.
	Name string
	Key  string
	// Size in bytes.
	Size int64
}

// fetches is how many ranged reads run at once, over all searches.
const fetches = 256

// Cache holds blocks of shards. It is safe for concurrent use.
type Cache struct {
	dir     string
	grain   int64 // bytes of a block
	bucket  bucket.Bucket
	budget  *disk.Budget
	relieve func() bool
	log     *slog.Logger
	metrics *Metrics

	life    context.Context
	end     context.CancelFunc
	flights sync.WaitGroup
	slots   chan struct{} // a token for each ranged read

	mu   sync.Mutex
	fifo fifo
	// views are open. waiting maps those that wait for room to the number of their
	// waiting goroutines.
	views int
	// searches began so far.
	searches uint64
	waiting  map[*view]int
	flying   int // flights that have not landed
	// freed reports that there may be room.
	freed wait.Change
}

// New makes a cache over a folder that exists. It must be closed. The cache calls relieve
// when a search finds no room although no other search holds any. Relieve reports whether
// it gave bytes back to the budget, so that a retry makes sense.
func New(dir string, b bucket.Bucket, budget *disk.Budget, relieve func() bool, log *slog.Logger, m *Metrics) *Cache {
	c := &Cache{
		dir: dir, grain: blockSize, bucket: b, budget: budget, relieve: relieve, log: log, metrics: m,
		slots: make(chan struct{}, fetches), waiting: make(map[*view]int),
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

// Reserve takes bytes from the budget, and evicts blocks if it must. It reports whether
// it succeeded: blocks in use stay.
func (c *Cache) Reserve(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reserve(n)
}

// Freed wakes the goroutines that wait for room.
func (c *Cache) Freed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.freed.Notify()
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
	o := b.object
	o.slots[b.number] = slot{ghost: g}
	off, n := o.span(b.number, b.number)
	if err := disk.Punch(o.path, off, disk.Rounded(n)); err != nil {
		o.stuck += int64(b.size)
		c.log.Error("free a block of a shard", "shard", o.Name, "error", err)
		return true
	}
	c.metrics.evictions.Inc()
	c.metrics.blocks.Sub(float64(b.size))
	c.budget.Give(int64(b.size))
	return true
}

// open makes an object's sparse file.
func (c *Cache) open(o Object) (*object, error) {
	taken := overhead(o.Size, c.grain)
	if !c.Reserve(taken) {
		return nil, fmt.Errorf("%w: %d bytes of shard %s", ErrNoRoom, taken, o.Name)
	}
	obj, err := newObject(c.dir, c.grain, o)
	if err != nil {
		c.budget.Give(taken)
	}
	return obj, err
}

// leave ends one reference of an object; callers hold mu.
func (c *Cache) leave(o *object) {
	if o.refs--; o.refs > 0 {
		return
	}
	taken := overhead(o.Size, o.grain) + o.stuck
	for i := range o.slots {
		if b := o.slots[i].block; b != nil {
			c.fifo.drop(b)
			c.metrics.blocks.Sub(float64(b.size))
			taken += int64(b.size)
		}
	}
	o.slots = nil
	if err := o.remove(); err != nil {
		c.log.Error("remove the blocks of a shard", "shard", o.Name, "error", err)
		return // what may still be on disk stays taken
	}
	c.budget.Give(taken)
	c.freed.Notify()
}
