package access

import "sync"

// calls counts the calls in progress by caller. It is safe for concurrent use.
type calls struct {
	mu sync.Mutex
	of map[string]int
}

// begin counts a call of a caller, after which end must follow. It reports whether the
// caller had fewer calls in progress than most, and counts nothing otherwise.
func (c *calls) begin(caller string, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[caller] >= most {
		return false
	}
	c.of[caller]++
	return true
}

func (c *calls) end(caller string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[caller]--; c.of[caller] == 0 {
		delete(c.of, caller)
	}
}
