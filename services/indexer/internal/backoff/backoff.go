// Package backoff computes and waits out the pauses between attempts.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Double returns least doubled the given number of times, at most most. Most is at
// least least.
func Double(least time.Duration, times uint32, most time.Duration) time.Duration {
	d := least
	for range times {
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return d
}

// Jitter returns d, more or less up to the given part of it: a part of 4 spreads it
// from three quarters to five quarters. It keeps processes and sources from acting
// in step.
func Jitter(d time.Duration, part int64) time.Duration {
	spread := d / time.Duration(part)
	return d - spread + rand.N(2*spread+1)
}

// Sleep waits for d, or until ctx ends, and reports whether ctx lives on.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
