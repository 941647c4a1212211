// Package wait provides pauses between attempts, and waiting for changes.
package wait

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for d, or until ctx ends, and reports whether ctx has not ended.
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

// Double returns least doubled the given number of times, at most most.
func Double[N int | uint32](least time.Duration, times N, most time.Duration) time.Duration {
	d := min(least, most)
	for i := N(0); i < times; i++ {
		if d > most/2 { // doubled it could overflow
			return most
		}
		d *= 2
	}
	return d
}

// Jitter returns a random time around d: a part of 4 spreads it from three quarters
// to five quarters of d. It keeps processes and sources from acting in step.
func Jitter(d time.Duration, part int64) time.Duration {
	spread := d / time.Duration(part)
	return d - spread + rand.N(2*spread+1)
}

// Half returns a random time from half of d up to d. It keeps many clients of one server
// from coming back at the same moment, and still bounds the pause of each.
func Half(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// Backoff yields growing pauses between attempts: the first from half of Least up to
// Least, each later one twice as long, none longer than Most. It is for one goroutine.
type Backoff struct {
	// Least and Most bound the pauses before they are spread.
	Least, Most time.Duration

	attempts int
}

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	d := Double(b.Least, b.attempts, b.Most)
	b.attempts++
	return Half(d)
}

// Reset makes the next pause the first one again: an attempt succeeded.
func (b *Backoff) Reset() { b.attempts = 0 }
