package compact

import (
	"context"
	"sync"
	"time"
)

// Jobs are the indexing jobs that an indexer has in hand, to which its merges give
// way. The zero value has none. It is safe for concurrent use.
type Jobs struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when the last one ends
}

// Begin counts a job until end is called, once.
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

// ended is closed when no job is in hand any more; nil if none is.
func (j *Jobs) ended() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.idle
}

// giveWay waits as long as the indexer has a job in hand, and the compaction has
// patience. The claim is kept alive meanwhile; its loss ends ctx.
func (m *merging) giveWay(ctx context.Context) error {
	for {
		ended, left := m.Jobs.ended(), time.Until(m.late)
		if ended == nil || left <= 0 {
			return nil
		}
		start := time.Now()
		select {
		case <-ended:
		case <-time.After(left):
		case <-ctx.Done():
		}
		m.waited(time.Since(start))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// waited notes that the merge has given way for so long.
func (m *merging) waited(long time.Duration) {
	m.paused.Add(int64(long))
	m.Metrics.paused.Add(long.Seconds())
}
