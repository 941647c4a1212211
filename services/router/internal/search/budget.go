package search

import (
	"context"
	"time"
)

// Budget is the time that queries get.
type Budget struct {
	// Default is the time of callers without a deadline. Most is the upper bound for all.
	Default, Most time.Duration
}

// Bounds of the part of a query's time that is reserved for merging and sending. It is
// a tenth within these bounds, and at most half.
const (
	leastReserve = 5 * time.Millisecond
	mostReserve  = 250 * time.Millisecond
)

// split returns the context of the whole call, and the context for asking searchers,
// which ends earlier. Cancel ends both.
func (b Budget) split(ctx context.Context) (whole, asking context.Context, cancel context.CancelFunc) {
	now := time.Now()
	left := b.Default
	if deadline, ok := ctx.Deadline(); ok {
		left = deadline.Sub(now)
	}
	left = min(left, b.Most)
	whole, cancelWhole := context.WithDeadline(ctx, now.Add(left))
	asking, cancelAsking := context.WithDeadline(whole, now.Add(left-reserve(left)))
	return whole, asking, func() { cancelAsking(); cancelWhole() }
}

func reserve(left time.Duration) time.Duration {
	return min(max(left/10, leastReserve), mostReserve, left/2)
}
