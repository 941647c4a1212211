package wait

import (
	"context"
	"sync"
)

// Change lets any number of goroutines wait for the next change of a state that a mutex
// guards. The zero value is ready. The mutex guards the Change too: hold it, for
// writing, in every call but Until.
type Change struct{ next chan struct{} }

// Next returns a channel that the next call of Notify closes. Take it under the lock under
// which the state was read, so that no change is missed.
func (c *Change) Next() <-chan struct{} {
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// Until waits until holds, which it calls under mu and again after each change, reports true. Its error is the cause of the
// end of ctx.
func (c *Change) Until(ctx context.Context, mu *sync.Mutex, holds func() bool) error {
	for {
		mu.Lock()
		if holds() {
			mu.Unlock()
			return nil
		}
		next := c.Next()
		mu.Unlock()
		select {
		case <-next:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Notify wakes all waiting goroutines.
func (c *Change) Notify() {
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}
