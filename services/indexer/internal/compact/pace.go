package compact

import (
	"context"

	"golang.org/x/time/rate"
)

// pacer admits bytes at a rate.
type pacer struct{ *rate.Limiter }

// newPacer returns a pacer for a rate. Its bucket holds the bytes of 5 ms, since a
// shorter wait is not worth a timer.
func newPacer(bytesPerSecond int64) pacer {
	return pacer{rate.NewLimiter(rate.Limit(bytesPerSecond), int(max(1, bytesPerSecond/200)))}
}

// wait waits until n bytes may pass. Its error is the cause of the context's end.
func (p pacer) wait(ctx context.Context, n int) error {
	for n > 0 {
		step := min(n, p.Burst())
		if err := p.WaitN(ctx, step); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err //nolint:wrapcheck // the deadline comes before the turn
		}
		n -= step
	}
	return nil
}
