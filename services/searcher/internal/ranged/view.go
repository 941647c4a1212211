package ranged

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/trawl-search/trawl/services/searcher/internal/processor"
)

// view is one search's use of an object. It holds the flights that it has started or joined, as far as its share of the
// memory reaches, so that it reads their blocks also if the disk has no room for them. Apart from data, which is set before the
// search begins, its fields are guarded by the cache's mutex.
type view struct {
	cache  *Cache
	object *object
	// data has the length of the object. Its tail is in place from block tail on, and the rest is not meant to be read. If own is set, it is
	// memory of this view.
	data []byte
	tail uint32
	own  bool

	held []*flight // oldest first
	// holds has the blocks that are held.
	holds map[uint32]*flight
	// announced are the numbers of blocks that the view will read. Those that were announced before its last read are in ahead, unless they are on their way.
	// Those in present were on the disk then, or on their way for a view with more room. They are announced again once one of them is missed, since others may
	// have been evicted with it.
	announced, ahead, present []uint32
	// seen has a bit for each block that was announced, so that announcing it again takes no lock. used has one for each that was read.
	seen []atomic.Uint32
	used []uint32
}

func (c *Cache) view(o *object) *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views++
	return &view{cache: c, object: o, tail: uint32(len(o.slots)), holds: make(map[uint32]*flight), seen: make([]atomic.Uint32, (len(o.slots)+31)/32), used: make([]uint32, (len(o.slots)+31)/32)}
}

func (v *view) close() {
	v.cache.mu.Lock()
	v.cache.views--
	v.announced, v.ahead, v.present = nil, nil, nil
	for _, fl := range v.held {
		v.drop(fl)
	}
	v.held = nil
	v.cache.mu.Unlock()
	v.leaveMemory()
}

// idle gives the search's processor back while it waits.
func idle(ctx context.Context, wait func() error) error {
	resume := processor.Pause(ctx)
	err := wait()
	return cmp.Or(err, resume())
}

// read copies the bytes at off of the object. Those that are missing are downloaded, which lasts at most until ctx ends. Apart from the
// context it is a format.Read.
func (v *view) read(ctx context.Context, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	o, end := v.object, off+int64(len(p))
	first, last := uint32(off/o.grain), uint32((end-1)/o.grain)
	if first < last {
		v.cache.mu.Lock()
		for n := first; n <= last && n < v.tail; n++ {
			v.find(n, last)
		}
		v.cache.mu.Unlock()
	}
	for n := first; n <= last; n++ {
		from, size := o.span(n, n)
		from, to := max(from, off), min(from+size, end)
		if err := v.copy(ctx, p[from-off:to-off], from, n); err != nil {
			return err
		}
	}
	return nil
}

// copy copies the bytes at off, which are in one block.
func (v *view) copy(ctx context.Context, p []byte, off int64, number uint32) error {
	if number >= v.tail {
		copy(p, v.data[off:])
		return nil
	}
	c, o := v.cache, v.object
	for {
		c.mu.Lock()
		b, fl := v.find(number, number)
		c.mu.Unlock()
		if fl != nil {
			if err := fl.wait(ctx); err != nil {
				return err
			}
			from, _ := o.span(fl.first, fl.first)
			copy(p, fl.data[off-from:])
			return nil
		}
		if _, err := o.file.ReadAt(p, off); err != nil {
			return fmt.Errorf("read a block from the disk: %w", err)
		}
		c.mu.Lock()
		there := o.slots[number].block == b
		c.mu.Unlock()
		if there { // and it was while its bytes were copied: one that comes back is another
			return nil
		}
	}
}

// wait waits until the flight has landed or ctx ends, and returns the error of either.
func (fl *flight) wait(ctx context.Context) error {
	if !fl.landed() {
		err := idle(ctx, func() error {
			select {
			case <-fl.done:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if err != nil {
			return fmt.Errorf("wait for the bucket: %w", err)
		}
	}
	return fl.err
}

// find returns the block on the disk, or the flight that brings it. One that is missing and was not announced is downloaded together with those after
// it that are missing, up to last. Callers hold mu.
func (v *view) find(number, last uint32) (*block, *flight) {
	c, o := v.cache, v.object
	if v.holds[number] == nil && o.slots[number].block == nil {
		v.announced, v.present = append(v.announced, v.present...), nil
	}
	if v.isAnnounced(number) {
		v.lookAhead() // it shares a request with what was announced near it
	} else {
		defer v.lookAhead() // it comes first
	}
	v.used[number/32] |= 1 << (number % 32)
	if fl := v.holds[number]; fl != nil {
		return nil, fl
	}
	if b := o.slots[number].block; b != nil {
		c.metrics.hits.Inc()
		b.freq = min(b.freq+1, mostFreq)
		return b, nil
	}
	c.metrics.misses.Inc()
	fl := o.flights[number]
	if fl == nil {
		for last+1 < v.tail && last-number < longestRun && v.isUsed(last+1) {
			last++ // the view reads again what was evicted, and probably what follows it
		}
		fl = c.launch(o, number, v.missing(number, last))
	}
	v.release(fl.blocks, true)
	v.hold(fl)
	return nil, fl
}

// missing returns the last block of the run of missing ones from first on, at most last. Callers hold mu.
func (v *view) missing(first, last uint32) uint32 {
	for at := first + 1; at <= last; at++ {
		if v.object.slots[at].block != nil || v.object.flights[at] != nil || v.holds[at] != nil {
			return at - 1
		}
	}
	return last
}

// isAnnounced reports whether the view was told that it will read of a block. It takes no lock.
func (v *view) isAnnounced(number uint32) bool { return v.seen[number/32].Load()>>(number%32)&1 != 0 }

// isUsed reports whether the view has read of a block. Callers hold mu.
func (v *view) isUsed(number uint32) bool { return v.used[number/32]>>(number%32)&1 != 0 }

// isRead reports whether the view has read all blocks of a flight that it announced. Callers hold mu.
func (v *view) isRead(fl *flight) bool {
	for number := fl.first; number < fl.first+uint32(fl.blocks); number++ {
		if v.isAnnounced(number) && !v.isUsed(number) {
			return false
		}
	}
	return true
}

// isTouched reports whether the view has read of a flight. Callers hold mu.
func (v *view) isTouched(fl *flight) bool {
	for number := fl.first; number < fl.first+uint32(fl.blocks); number++ {
		if v.isUsed(number) {
			return true
		}
	}
	return false
}

// hold needs mu.
func (v *view) hold(fl *flight) {
	fl.holders++
	v.held = append(v.held, fl)
	for n := range uint32(fl.blocks) {
		v.holds[fl.first+n] = fl
	}
}

// drop ends the hold of a flight. If nobody else holds one that has not landed, it is cancelled. Callers hold mu and remove it from
// held.
func (v *view) drop(fl *flight) {
	for n := range uint32(fl.blocks) {
		if v.holds[fl.first+n] == fl { // not a later flight, after the block was evicted
			delete(v.holds, fl.first+n)
		}
	}
	if fl.holders--; fl.holders == 0 && !fl.landed() {
		fl.cancel()
		v.cache.ground(fl)
	}
}

// release makes room in the view's share of the memory for that many blocks, as far as it can: it drops flights that have landed, first those of
// which all announced blocks were read, then those of which some were, for announced blocks may never be read, and if unread is set also the others; of each
// the oldest first. Callers hold mu.
func (v *view) release(blocks int, unread bool) {
	for _, may := range []func(*flight) bool{v.isRead, v.isTouched, func(*flight) bool { return unread }} {
		for i := 0; i < len(v.held) && v.room() < blocks; {
			if fl := v.held[i]; may(fl) && fl.landed() {
				v.drop(fl)
				v.held = slices.Delete(v.held, i, i+1)
			} else {
				i++
			}
		}
	}
}

// room is how many more blocks the view may hold. Callers hold mu.
func (v *view) room() int {
	share := min(v.cache.searchMemory, v.cache.memory/v.cache.views) / int(v.object.grain)
	return max(share, 1) - len(v.holds)
}

// soon notes blocks that the view is about to read. Its next read starts to download those that are missing: what is announced up to then shares
// requests. It is a format.Soon.
func (v *view) soon(off, n int64) {
	first, last := uint32(off/v.object.grain), uint32((off+n-1)/v.object.grain)
	for first <= last && v.isAnnounced(first) {
		first++
	}
	if first > last {
		return
	}
	v.cache.mu.Lock()
	defer v.cache.mu.Unlock()
	for at := first; at <= last; at++ {
		if v.seen[at/32].Or(1<<(at%32))>>(at%32)&1 == 0 && at < v.tail {
			v.announced = append(v.announced, at)
		}
	}
}

// lookAhead starts to download announced blocks, as far as the view may hold them. The
// others stay ahead until the view reads again. Callers hold mu.
func (v *view) lookAhead() {
	c, o := v.cache, v.object
	slices.Sort(v.announced)
	v.ahead, v.announced = append(v.ahead, v.announced...), v.announced[:0]
	for len(v.ahead) > 0 {
		first := v.ahead[0]
		switch {
		case v.holds[first] != nil || v.isUsed(first):
			v.ahead = v.ahead[1:]
			continue
		case o.slots[first].block != nil:
			v.ahead, v.present = v.ahead[1:], append(v.present, first)
			continue
		}
		fl := o.flights[first]
		if fl == nil {
			n := v.together()
			v.release(n, false)
			if n = min(n, v.room()); n < 1 {
				return
			}
			fl = c.launch(o, first, first+uint32(n)-1)
		} else if v.release(fl.blocks, false); v.room() < fl.blocks { // another view, with more room, started it
			v.ahead, v.present = v.ahead[1:], append(v.present, first)
			continue
		}
		v.hold(fl)
	}
}

// together returns how many blocks one read brings from the first one ahead on: up to the last of those ahead that are near each other and have only missing
// blocks in between. Callers hold mu.
func (v *view) together() int {
	first := v.ahead[0]
	last := first
	for _, next := range v.ahead[1:] {
		if next < last || next-last > near || next-first >= longestRun || v.missing(last, next) != next {
			break
		}
		last = next
	}
	return int(last-first) + 1
}
