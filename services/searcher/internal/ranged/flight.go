package ranged

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

const (
	// longestRun bounds the blocks of one ranged read.
	longestRun = 64
	// near is how far apart two announced blocks are at most that come with one ranged read: a request costs more than the blocks between them.
	near = 8
)

// flight is one ranged read of adjacent blocks. Views hold it to copy its bytes; if the last one leaves before it has them, it
// is cancelled. Data and err may be read once done is closed. Holders is guarded by the cache's mutex.
type flight struct {
	object *object
	first  uint32
	blocks int
	cancel context.CancelFunc

	done chan struct{}
	data []byte
	err  error

	holders int
}

// launch starts to download the blocks from first to last, of which none is there or on its way. Callers hold mu.
func (c *Cache) launch(o *object, first, last uint32) *flight {
	fl := &flight{object: o, first: first, blocks: min(int(last-first)+1, longestRun), done: make(chan struct{})}
	for n := range uint32(fl.blocks) {
		o.flights[first+n] = fl
	}
	o.refs++
	var ctx context.Context
	ctx, fl.cancel = context.WithCancel(c.life)
	c.flights.Go(func() { c.fly(ctx, fl) })
	return fl
}

// fly downloads the blocks, passes them to their readers, and keeps those for which there is room.
func (c *Cache) fly(ctx context.Context, fl *flight) {
	fl.data, fl.err = c.download(ctx, fl)
	fl.cancel()
	close(fl.done)
	if fl.err == nil {
		c.keep(fl)
	}
	c.mu.Lock()
	c.ground(fl)
	c.mu.Unlock()
	c.leave(fl.object)
}

// ground ends the search for a flight: nobody who does not hold it yet will. Callers hold mu.
func (c *Cache) ground(fl *flight) {
	for n := range uint32(fl.blocks) {
		if o := fl.object; o.flights[fl.first+n] == fl {
			delete(o.flights, fl.first+n)
		}
	}
}

// landed reports whether the flight has its data or an error.
func (fl *flight) landed() bool {
	select {
	case <-fl.done:
		return true
	default:
		return false
	}
}

// download reads the flight's bytes from the bucket.
func (c *Cache) download(ctx context.Context, fl *flight) (data []byte, err error) {
	o := fl.object
	off, n := o.span(fl.first, fl.first+uint32(fl.blocks)-1)
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
		return nil, ctx.Err()
	}
	body, err := c.bucket.GetRange(ctx, o.Key, off, n)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data = make([]byte, n)
	read, err := io.ReadFull(body, data)
	c.metrics.bytes.Add(float64(read))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // not a byte came, which is no regular end either
	}
	return data, err
}

// plain removes from an error the context errors that a search would take for the end of
// its own time.
func plain(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errors.New(err.Error())
	}
	return err
}

// keep writes the flight's blocks to the disk, as many as there is room for.
func (c *Cache) keep(fl *flight) {
	o := fl.object
	c.mu.Lock()
	blocks := 0
	for blocks < fl.blocks && fl.first+uint32(blocks) < o.tail && c.prepare(o) && c.reserve(o.taken(fl.first+uint32(blocks))) {
		blocks++
	}
	c.mu.Unlock()
	if blocks == 0 {
		return
	}
	off, n := o.span(fl.first, fl.first+uint32(blocks)-1)
	err := c.write(o, off, fl.data[:n])
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.complain(o, err)
		c.punch(o, fl.first, fl.first+uint32(blocks)-1)
		return
	}
	for number := fl.first; number < fl.first+uint32(blocks); number++ {
		b := &block{object: o, number: number, size: int32(o.taken(number))}
		c.metrics.blocks.Add(float64(b.size))
		c.fifo.insert(b, o.slots[number].ghost)
		o.slots[number].block = b
	}
}

// write writes bytes to the object's file. On a full disk it evicts blocks and tries again: another program
// may have taken space that the budget counts as free.
func (c *Cache) write(o *object, off int64, data []byte) error {
	for {
		_, err := o.file.WriteAt(data, off)
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		c.mu.Lock()
		evicted := c.evict()
		c.mu.Unlock()
		if !evicted {
			return err
		}
	}
}

// taken is the disk space of a block.
func (o *object) taken(number uint32) int64 {
	_, n := o.span(number, number)
	return disk.Rounded(n)
}
