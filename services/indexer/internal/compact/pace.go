package compact

import (
	"context"

	"golang.org/x/time/rate"
)

// pacer admits bytes at a rate.
type pacer struct{ *rate.Limiter }

// newPacer returns a pacer of so many bytes a second. Its bucket holds what the rate
// admits in 5 ms: a shorter wait is not worth a timer.
func newPacer(bytesPerSecond int64) pacer {
	return pacer{rate.NewLimiter(rate.Limit(bytesPerSecond), int(max(1, bytesPerSecond/200)))}
}

// wait returns when n bytes may pass, or with the cause of the context's end.
func (p pacer) wait(ctx context.Context, n int) error {
	for n > 0 {
		step := min(n, p.Burst())
		if err := p.WaitN(ctx, step); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err //nolint:wrapcheck // it says that the deadline comes first
		}
		n -= step
	}
	return nil
}
