package ranged

import (
	"context"
	"fmt"
	"syscall"

	"github.com/trawl-search/trawl/index/format"
)

// place makes the tail of the object readable in place: in the object's file, where it stays, or, if the disk has no room for it,
// in memory of the view.
func (v *view) place(ctx context.Context) error {
	placed, err := v.placeOnDisk(ctx)
	if err == nil && !placed {
		err = v.placeInMemory(ctx)
	}
	return err
}

// placeOnDisk reports whether the tail is on the disk. One search at a time puts it there.
func (v *view) placeOnDisk(ctx context.Context) (bool, error) {
	c, o := v.cache, v.object
	if v.placed() {
		return true, nil
	}
	err := idle(ctx, func() error {
		select {
		case o.placing <- struct{}{}:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for the tail of a shard: %w", ctx.Err())
		}
	})
	if err != nil {
		return false, err
	}
	defer func() { <-o.placing }()
	if v.placed() {
		return true, nil
	}
	start, err := format.TailStart(o.Name, o.Size, func(p []byte, off int64) error { return v.read(ctx, p, off) })
	if err != nil {
		return false, err
	}
	if !c.takeTail(o, uint32(start/o.grain)) {
		return false, nil
	}
	off, _ := o.span(o.tail, o.tail)
	tail := make([]byte, o.Size-off)
	err = v.read(ctx, tail, off)
	var failed error
	if err == nil {
		failed = c.write(o, off, tail)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || failed != nil {
		c.tails -= o.tailSize()
		c.punch(o, o.tail, uint32(len(o.slots))-1)
		if failed != nil {
			c.complain(o, failed)
		}
		return false, err
	}
	o.placed = true
	v.data, v.tail = o.data, o.tail
	v.release(len(o.slots), false) // it is in place now
	return true, nil
}

// placed reports whether the tail is on the disk, and uses it.
func (v *view) placed() bool {
	v.cache.mu.Lock()
	defer v.cache.mu.Unlock()
	if v.object.placed {
		v.data, v.tail = v.object.data, v.object.tail
	}
	return v.object.placed
}

// takeTail records where the tail of an object starts, and takes room for it on the disk.
func (c *Cache) takeTail(o *object, tail uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.tail = tail
	n := o.tailSize()
	if limit := c.budget.Limit(); limit > 0 && c.tails+n > limit/tailShare || !c.prepare(o) || !c.reserve(n) {
		return false
	}
	c.tails += n
	return true
}

// placeInMemory reads the tail into memory of the view. It waits while many searches have tails in memory.
func (v *view) placeInMemory(ctx context.Context) error {
	c, o := v.cache, v.object
	err := idle(ctx, func() error {
		select {
		case c.inMind <- struct{}{}:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for memory for the tail of a shard: %w", ctx.Err())
		}
	})
	if err != nil {
		return err
	}
	data, err := syscall.Mmap(-1, 0, int(o.Size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		<-c.inMind
		return fmt.Errorf("take memory for the tail of a shard: %w", err)
	}
	v.data, v.own = data, true
	c.mu.Lock()
	tail := o.tail // which each search that finds no room on the disk records anew
	c.mu.Unlock()
	off, _ := o.span(tail, tail)
	if err := v.read(ctx, data[off:], off); err != nil {
		return err
	}
	v.tail = tail
	c.mu.Lock()
	defer c.mu.Unlock()
	v.release(len(o.slots), false)
	return nil
}

// leaveMemory gives the view's memory back, if it has any.
func (v *view) leaveMemory() {
	if !v.own {
		return
	}
	if err := syscall.Munmap(v.data); err != nil {
		v.cache.log.Error("free the memory of a tail", "shard", v.object.Name, "error", err)
	}
	<-v.cache.inMind
}
