package catalog

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CurrentRevision returns the revision of the newest acknowledged change of what is
// desired or served; 0 before the first. It is linearizable: the read from etcd
// begins after the call. Concurrent callers share reads, so that any number of them
// costs etcd one read at a time.
func (s *Store) CurrentRevision(ctx context.Context) (int64, error) {
	revision, err := s.clock.now(ctx)
	if err != nil {
		return 0, fmt.Errorf("read current revision: %w", err)
	}
	return revision, nil
}

func (s *Store) readClock(ctx context.Context) (int64, error) {
	resp, err := s.client.Get(ctx, s.clockKey())
	if err != nil || len(resp.Kvs) == 0 {
		return 0, err
	}
	return resp.Kvs[0].ModRevision, nil
}

// clock batches reads. At most one read runs; callers that come meanwhile gather
// for the next, because the running one may have begun before them. The first
// caller of a batch leads it: it reads in its own goroutine and with its own
// context, so that no read outlives its callers.
type clock struct {
	read func(context.Context) (int64, error)

	mu        sync.Mutex
	running   *batch // being read, or the last one read
	gathering *batch // still open to callers
}

// batch is one read and those who wait for it. Its results are written before
// done is closed.
type batch struct {
	done     chan struct{}
	revision int64
	err      error
	// abandoned is set if the leader's context ended: the others must read again.
	abandoned bool
}

func (c *clock) now(ctx context.Context) (int64, error) {
	for {
		b, leads, before := c.join()
		if leads {
			c.lead(ctx, b, before)
			return b.revision, b.err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-b.done:
		}
		if !b.abandoned {
			return b.revision, b.err
		}
	}
}

// join enters the open batch, or opens one. before is the batch that the leader
// must let end first; nil if there is none.
func (c *clock) join() (b *batch, leads bool, before *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gathering != nil {
		return c.gathering, false, nil
	}
	c.gathering = &batch{done: make(chan struct{})}
	return c.gathering, true, c.running
}

func (c *clock) lead(ctx context.Context, b, before *batch) {
	defer close(b.done)
	if before != nil {
		select {
		case <-before.done:
		case <-ctx.Done():
		}
	}
	// No caller can join from here on: the read must start after the last one has joined.
	c.mu.Lock()
	c.gathering = nil
	if ctx.Err() == nil {
		c.running = b
	}
	c.mu.Unlock()
	if ctx.Err() != nil {
		b.err, b.abandoned = context.Cause(ctx), true
		return
	}
	b.revision, b.err = c.read(ctx)
	b.abandoned = b.err != nil && (ctx.Err() != nil || endsCall(b.err))
}

// endsCall reports whether etcd ended a call as if its context had ended: its copy of the
// deadline can pass a moment before the caller's does.
func endsCall(err error) bool {
	code := status.Code(err)
	return code == codes.DeadlineExceeded || code == codes.Canceled
}
