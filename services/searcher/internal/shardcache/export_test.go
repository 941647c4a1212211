package shardcache

import (
	"context"
	"time"
)

// Next is the next piece of work, nil if there is none now: Run without its
// goroutines, for tests that choose their order.
func (s *Store) Next() func(context.Context) {
	work, _ := s.next(time.Now(), true)
	return work
}

// Used is what the store takes of its budget, in bytes.
func (s *Store) Used() int64 { return s.budget.Used() }
