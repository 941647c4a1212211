package delivery

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// call is a call from the network. It lasts until its answers are read.
type call struct {
	answers *Answers

	mu     sync.Mutex
	caller string
	// left is what Hold wants to be called at the end.
	left func()
	// ended means that the handler has returned.
	ended bool
	// unread are the bytes of messages that are not read.
	unread int64
	// read has an element if messages were read since it was last received from. It is nil if nobody waits.
	read chan struct{}
}

// begin returns a call and its context. A call whose caller nobody names is of the caller.
func (a *Answers) begin(ctx context.Context, caller string) (context.Context, *call) {
	c := &call{answers: a, caller: caller, left: func() {}}
	return context.WithValue(ctx, callKey{}, c), c
}

// end is called when the handler has returned.
func (c *call) end() {
	c.mu.Lock()
	c.ended = true
	c.leave()
}

// leave unlocks the call, and ends it if nothing is left of it.
func (c *call) leave() {
	over, left := c.ended && c.unread == 0, c.left
	if over {
		c.left = func() {}
	}
	c.mu.Unlock()
	if over {
		left()
	}
}

// charge charges the caller for an answer, until give. The error is a status.
func (c *call) charge(bytes int64) (caller string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.answers.take(c.caller, bytes); err != nil {
		return "", err
	}
	c.unread += bytes
	return c.caller, nil
}

// give gives back what a caller was charged.
func (c *call) give(caller string, bytes int64) {
	c.answers.unread.Give(caller, bytes)
	c.mu.Lock()
	c.unread -= bytes
	c.leave()
	select {
	case c.read <- struct{}{}:
	default:
	}
}

// window is how many bytes of a stream may be unread before the next message waits. It is
// gRPC's own limit, which has no time limit.
const window = 64 << 10

// wait waits for room for the next message of a stream. The caller has the time of patience
// to take what was sent, and as much again for each MiB. The error is a status.
func (c *call) wait(ctx context.Context) error {
	unread := c.waiting()
	if unread < window {
		return nil
	}
	late := time.NewTimer(c.answers.patience * time.Duration(1+unread>>20))
	defer late.Stop()
	for {
		select {
		case <-c.read:
			if c.waiting() < window {
				return nil
			}
		case <-late.C:
			c.answers.cutOff.Inc()
			return status.Error(codes.DeadlineExceeded, "the caller did not take the answer in time")
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// waiting is the number of unread bytes.
func (c *call) waiting() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unread
}
