package ranged

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// longestRun bounds the blocks of one ranged read.
const longestRun = 64

// flight is one ranged read of adjacent blocks. Every reader of one of the blocks waits
// for it, and the last one to leave cancels it. Err may be read once done is closed; the
// fields below it are guarded by the cache's mutex.
type flight struct {
	object *object
	blocks []*block
	cancel context.CancelFunc
	done   chan struct{}
	err    error

	waiters int
	// abandoned is set if all waiters left before it landed.
	abandoned, landed bool
}

// launch starts to download the blocks from first to last that are missing, as many as
// there is room for. It returns nil if there is room for none. Callers hold mu.
func (c *Cache) launch(o *object, first, last uint32) *flight {
	fl := &flight{object: o, done: make(chan struct{})}
	for n := first; n <= last && len(fl.blocks) < longestRun; n++ {
		_, bytes := o.span(n, n)
		size := disk.Rounded(bytes)
		if !c.reserve(size) {
			break
		}
		c.metrics.blocks.Add(float64(size))
		b := &block{object: o, flight: fl, number: n, size: int32(size)}
		o.slots[n].block = b
		fl.blocks = append(fl.blocks, b)
	}
	if len(fl.blocks) == 0 {
		return nil
	}
	o.refs++
	c.flying++
	var ctx context.Context
	ctx, fl.cancel = context.WithCancel(c.life)
	c.flights.Go(func() { c.land(fl, c.bring(ctx, fl)) })
	return fl
}

// land records how the flight ended, and makes its blocks usable or forgets them.
func (c *Cache) land(fl *flight, err error) {
	fl.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	o := fl.object
	for _, b := range fl.blocks {
		b.flight = nil
		if err == nil {
			b.main = o.everRead(b.number)
			c.fifo.insert(b, o.slots[b.number].ghost)
			continue
		}
		b.dead = true
		o.slots[b.number].block = nil
		if off, n := o.span(b.number, b.number); disk.Punch(o.path, off, disk.Rounded(n)) != nil {
			o.stuck += int64(b.size) // a part of it may be on disk
			continue
		}
		c.metrics.blocks.Sub(float64(b.size))
		c.budget.Give(int64(b.size))
	}
	fl.err, fl.landed = err, true
	close(fl.done)
	c.flying--
	c.freed.Notify()
	c.leave(o)
}

var pieces = sync.Pool{New: func() any { return new([blockSize]byte) }}

// bring downloads the flight's bytes into the sparse file.
func (c *Cache) bring(ctx context.Context, fl *flight) (err error) {
	o := fl.object
	off, n := o.span(fl.blocks[0].number, fl.blocks[len(fl.blocks)-1].number)
	defer func() {
		outcome := "ok"
		if err != nil {
			outcome = "failed"
			err = fmt.Errorf("read bytes %d to %d of shard %s from the bucket: %w", off, off+n, o.Name, plain(err))
		}
		c.metrics.reads.WithLabelValues(outcome).Inc()
	}()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	body, err := c.bucket.GetRange(ctx, o.Key, off, n)
	if err != nil {
		return err
	}
	defer body.Close()
	file, err := os.OpenFile(o.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(c.copy(file, off, n, body), file.Close())
}

// copy writes n bytes of body at off.
func (c *Cache) copy(file *os.File, off, n int64, body io.Reader) error {
	piece := pieces.Get().(*[blockSize]byte)
	defer pieces.Put(piece)
	for n > 0 {
		part := piece[:min(n, blockSize)]
		read, err := io.ReadFull(body, part)
		c.metrics.bytes.Add(float64(read))
		if err != nil {
			return err
		}
		if err := c.write(file, off, part); err != nil {
			return err
		}
		off, n = off+int64(read), n-int64(read)
	}
	return nil
}

// write writes a piece. On a full disk it evicts blocks and tries again: another program
// may have taken space that the budget counts as free.
func (c *Cache) write(file *os.File, off int64, piece []byte) error {
	for {
		_, err := file.WriteAt(piece, off)
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		c.mu.Lock()
		evicted := c.evict()
		c.mu.Unlock()
		if !evicted {
			return fmt.Errorf("%w: %w", ErrNoRoom, err)
		}
	}
}

// plain removes from an error the context errors that a search would take for the end of
// its own time.
func plain(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errors.New(err.Error())
	}
	return err
}

// wait waits until the flight or ctx ends. Its error is that of ctx.
func (c *Cache) wait(ctx context.Context, fl *flight) error {
	var err error
	select {
	case <-fl.done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if fl.waiters--; fl.waiters == 0 && !fl.landed {
		fl.abandoned = true
		fl.cancel()
	}
	return err
}
