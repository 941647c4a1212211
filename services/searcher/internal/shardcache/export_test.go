package shardcache

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Next is the next piece of work, nil if there is none now: Run without its
// goroutines, for tests that choose their order.
func (s *Store) Next() func(context.Context) {
	work, _ := s.next(time.Now(), true)
	return work
}

// Used is what the store takes of its budget, in bytes.
func (s *Store) Used() int64 { return s.budget.Used() }

// CountReady counts in counts how often the store counts the open shards.
func (s *Store) CountReady(counts *int) {
	s.metrics.ready = countedGauge{s.metrics.ready, counts}
}

// Locked reports whether anyone has the store's lock, for tests in which nobody else is at work.
func (s *Store) Locked() bool {
	free := s.mu.TryLock()
	if free {
		s.mu.Unlock()
	}
	return !free
}

type countedGauge struct {
	prometheus.Gauge
	sets *int
}

func (g countedGauge) Set(v float64) {
	*g.sets++
	g.Gauge.Set(v)
}
