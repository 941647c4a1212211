package compact

import (
	"context"
	"sync"
	"time"
)

// pacer spreads work over time: so many bytes a second. It is safe for concurrent use.
type pacer struct {
	rate int64

	mu   sync.Mutex
	next time.Time // when all that was admitted is paid for
}

// wait admits n bytes: at once if what was admitted before is paid for.
func (p *pacer) wait(ctx context.Context, n int) error {
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	wait := p.next.Sub(now)
	p.next = p.next.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	p.mu.Unlock()
	// Short waits are gathered into one that is worth a timer.
	if wait < 5*time.Millisecond {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
		return nil
	}
}
