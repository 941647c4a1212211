package compact

import (
	"context"
	"sync"
	"time"
)

// Jobs counts the running indexing jobs of an indexer, which go before its merges.
// The zero value counts none. It is safe for concurrent use.
type Jobs struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when the last one ends
}

// Begin counts a job until end is called, which must happen once.
func (j *Jobs) Begin() (end func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.n++; j.n == 1 {
		j.idle = make(chan struct{})
	}
	return j.end
}

func (j *Jobs) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.n--; j.n == 0 {
		close(j.idle)
		j.idle = nil
	}
}

// idleC returns a channel that is closed when the last running job ends, nil if none
// runs.
func (j *Jobs) idleC() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.idle
}

// giveWay waits while a job runs, until the compaction's patience ends. The claim is
// kept alive meanwhile, and its loss ends ctx.
func (m *merging) giveWay(ctx context.Context) error {
	for {
		idle, left := m.Jobs.idleC(), time.Until(m.late)
		if idle == nil || left <= 0 {
			return nil
		}
		start := time.Now()
		select {
		case <-idle:
		case <-time.After(left):
		case <-ctx.Done():
		}
		m.paused.Add(int64(time.Since(start)))
		m.Metrics.paused.Add(time.Since(start).Seconds())
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}
