package wait

// Change lets any number of goroutines wait for the next change of a state that a mutex
// guards. The zero value is ready. The mutex guards the Change too: hold it, for
// writing, in every call.
type Change struct{ next chan struct{} }

// Next returns a channel that the next call of Notify closes. Take it under the lock under
// which the state was read, so that no change is missed.
func (c *Change) Next() <-chan struct{} {
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// Notify wakes all waiting goroutines.
func (c *Change) Notify() {
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}
