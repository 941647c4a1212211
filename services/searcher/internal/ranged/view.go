package ranged

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/trawl-search/trawl/services/searcher/internal/processor"
)

// errCrowded ends a search that holds room while all searches wait for room, so that none
// could continue. The search is retried when there is room.
var errCrowded = errors.New("searches wait for each other's room")

// view is one search's use of an object. It pins the blocks that it reads until
// it is closed. Its fields are guarded by the cache's mutex.
type view struct {
	cache  *Cache
	object *object
	pinned map[uint32]*block
	// announced are the numbers of blocks that the view will read and that were missing. ahead are
	// flights for some of them; the view is one of their waiters.
	announced []uint32
	ahead     []*flight
	// seen has a bit for each block that was announced or found present, so that announcing it again
	// takes no lock.
	seen []atomic.Uint32
	// age orders views by when their searches began: older ones have lower ones.
	age uint64
	// crowded is set when the view must give way. alone is set when there is no other
	// view.
	crowded, alone bool
}

// run calls do with a view of an object, and again if the view had to give way. No search
// that began later can take its room meanwhile.
func (c *Cache) run(ctx context.Context, o *object, do func(*view) error) error {
	c.mu.Lock()
	c.searches++
	age := c.searches
	c.mu.Unlock()
	for {
		v := c.view(o, age)
		err := do(v)
		v.close()
		switch {
		case !errors.Is(err, errCrowded):
			return err
		case v.alone && !c.relieve():
			return fmt.Errorf("%w: raise the disk budget of %d bytes, or narrow the query", ErrNoRoom, c.budget.Limit())
		}
		if err := idle(ctx, func() error { return c.waitTurn(ctx) }); err != nil {
			return err
		}
	}
}

// idle gives the search's processor back while it waits.
func idle(ctx context.Context, wait func() error) error {
	resume := processor.Pause(ctx)
	err := wait()
	return cmp.Or(err, resume())
}

// waitTurn waits until no view waits for room.
func (c *Cache) waitTurn(ctx context.Context) error {
	for {
		c.mu.Lock()
		waiting, freed := len(c.waiting), c.freed.Next()
		c.mu.Unlock()
		if waiting == 0 {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return fmt.Errorf("wait for room in the disk budget: %w", ctx.Err())
		}
	}
}

func (c *Cache) view(o *object, age uint64) *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views++
	return &view{cache: c, object: o, age: age, pinned: make(map[uint32]*block), seen: make([]atomic.Uint32, (len(o.slots)+31)/32)}
}

// locate records where the tail of the shard starts.
func (v *view) locate(tail int64) {
	c := v.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	v.object.tail = min(v.object.tail, uint32(tail/v.object.grain))
}

func (v *view) close() {
	c := v.cache
	c.abandon(v.ahead)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range v.pinned {
		v.unpin(b)
	}
	v.pinned = nil
	c.views--
	c.freed.Notify()
}

// fill makes bytes of the object readable for the view until ctx ends. Apart from the
// context it is a format.Fill.
func (v *view) fill(ctx context.Context, off, n int64) error {
	if n <= 0 {
		return nil
	}
	first, last := uint32(off/v.object.grain), uint32((off+n-1)/v.object.grain)
	for {
		flights, short := v.claim(first, last)
		switch {
		case len(flights) > 0:
			if err := idle(ctx, func() error { return v.await(ctx, flights) }); err != nil {
				return err
			}
		case short != nil:
			if err := idle(ctx, func() error { return v.waitForRoom(ctx, short) }); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// aheadShare is the divisor of the disk budget that announced blocks may take while they are on their
// way, for all views together. They are not pinned, and more of them would drive out each other.
const aheadShare = 4

// soon starts to download the missing blocks of bytes that the view is about to read. It is a
// format.Soon.
func (v *view) soon(off, n int64) {
	first, last := uint32(off/v.object.grain), uint32((off+n-1)/v.object.grain)
	for first <= last && v.seen[first/32].Load()>>(first%32)&1 != 0 {
		first++
	}
	if first > last {
		return
	}
	v.cache.mu.Lock()
	defer v.cache.mu.Unlock()
	for at := first; at <= last; at++ {
		if v.seen[at/32].Or(1<<(at%32))>>(at%32)&1 == 0 && v.object.slots[at].block == nil {
			v.announced = append(v.announced, at)
		}
	}
	v.lookAhead()
}

// lookAhead starts to download announced blocks, as far as there is room that no view waits for. The
// others stay announced until the view reads again. Callers hold mu.
func (v *view) lookAhead() {
	for len(v.announced) > 0 && len(v.cache.waiting) == 0 {
		first, n, most := v.announced[0], 1, v.roomAhead()
		if v.object.slots[first].block != nil {
			v.announced = v.announced[1:]
			continue
		}
		if most < 1 {
			return
		}
		for n < min(most, len(v.announced)) && v.announced[n] == first+uint32(n) {
			n++
		}
		fl := v.cache.launch(v.object, first, v.object.missing(first, first+uint32(n)-1))
		if fl == nil {
			return
		}
		fl.waiters++
		v.announced, v.ahead = v.announced[len(fl.blocks):], append(v.ahead, fl)
	}
}

// roomAhead returns how many announced blocks the next flight may have. It forgets the flights that
// have landed. The views share the reads that run at once and the room; each may have one flight and
// one block. Callers hold mu.
func (v *view) roomAhead() int {
	v.ahead = slices.DeleteFunc(v.ahead, func(fl *flight) bool { return fl.landed })
	if len(v.ahead) >= max(1, fetches/v.cache.views) {
		return 0
	}
	limit := v.cache.budget.Limit()
	if limit <= 0 {
		return longestRun
	}
	room := int(max(1, limit/aheadShare/int64(v.cache.views)/v.object.grain))
	for _, fl := range v.ahead {
		room -= len(fl.blocks)
	}
	return room
}

// await waits for flights and returns the first error. It ignores a flight that was
// abandoned before the view wanted it: the next claim starts another.
func (v *view) await(ctx context.Context, flights []*flight) error {
	for i, fl := range flights {
		err := v.cache.wait(ctx, fl)
		if err != nil {
			err = fmt.Errorf("wait for the bucket: %w", err)
		} else if !fl.abandoned {
			err = fl.err
		}
		if err != nil {
			v.cache.abandon(flights[i+1:])
			return err
		}
	}
	return nil
}

// abandon ends the wait for flights before their end.
func (c *Cache) abandon(flights []*flight) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, fl := range flights {
		_ = c.wait(ended, fl) // says only that it was not waited for
	}
}

// claim pins the blocks from first to last that are on disk or being downloaded, starts
// to download the others, and returns the flights to wait for. If some blocks find no
// room, short is closed when there may be more.
func (v *view) claim(first, last uint32) (flights []*flight, short <-chan struct{}) {
	c := v.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := first; n <= last; n++ {
		b := v.object.slots[n].block
		if b == nil {
			if c.olderWaits(v) {
				return flights, c.freed.Next()
			}
			fl := c.launch(v.object, n, v.runFrom(n, last))
			if fl == nil {
				return flights, c.freed.Next()
			}
			b = fl.blocks[0]
		}
		fl := b.flight
		if fl == nil || !fl.abandoned {
			v.pin(b)
		}
		if fl != nil && !slices.Contains(flights, fl) {
			fl.waiters++
			flights = append(flights, fl)
		}
	}
	v.lookAhead()
	return flights, nil
}

// olderWaits reports whether a view of an older search waits for room: it comes
// first. Callers hold mu.
func (c *Cache) olderWaits(v *view) bool {
	for w := range c.waiting {
		if w.age < v.age {
			return true
		}
	}
	return false
}

// runFrom returns the last block to download together with a missing one. The run covers
// the wanted blocks after it. It reads ahead as many blocks as the view has read directly
// before, and ends before a block that is present.
func (v *view) runFrom(n, last uint32) uint32 {
	before := uint32(0)
	for before < longestRun && before < n && v.pinned[n-before-1] != nil {
		before++
	}
	return v.object.missing(n, min(max(last, n+before), n+longestRun-1, uint32(len(v.object.slots)-1)))
}

// pin needs the cache's mutex.
func (v *view) pin(b *block) {
	old := v.pinned[b.number]
	if old == b {
		return
	}
	if old != nil {
		v.unpin(old) // it never came
	}
	if b.flight == nil {
		v.cache.metrics.hits.Inc()
		b.freq = min(b.freq+1, mostFreq)
	} else {
		v.cache.metrics.misses.Inc()
	}
	b.pins++
	v.pinned[b.number] = b
}

// unpin needs the cache's mutex.
func (v *view) unpin(b *block) {
	if b.pins--; b.pins == 0 && !b.dead && b.flight == nil {
		v.cache.fifo.unused(b)
	}
}

// waitForRoom waits until Freed reports that there may be room. When all views wait and
// no download is in progress, the view of the youngest search gives way. The oldest never
// does, so every search becomes the oldest at some time and ends.
func (v *view) waitForRoom(ctx context.Context, freed <-chan struct{}) error {
	c := v.cache
	c.mu.Lock()
	c.waiting[v]++
	if len(c.waiting) == c.views && c.flying == 0 && freed == c.freed.Next() {
		c.crowd()
	}
	c.mu.Unlock()
	var err error
	select {
	case <-freed:
	case <-ctx.Done():
		err = fmt.Errorf("wait for room in the disk budget: %w", ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[v]--; c.waiting[v] == 0 {
		delete(c.waiting, v)
	}
	if v.crowded {
		return errCrowded
	}
	return err
}

// crowd makes the youngest view give way; callers hold mu.
func (c *Cache) crowd() {
	var youngest *view
	for v := range c.waiting {
		if youngest == nil || v.age > youngest.age {
			youngest = v
		}
	}
	youngest.crowded, youngest.alone = true, c.views == 1
	c.freed.Notify()
}
