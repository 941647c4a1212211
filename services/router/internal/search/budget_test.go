package search

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTimeIsKeptForTheAnswer: asking searchers ends before the caller's deadline,
// by a tenth of the time, at least 5 ms and at most 250 ms but never more than half of
// it, and no query gets more than is allowed. A deadline of a millisecond may be over already.
func TestTimeIsKeptForTheAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := func(name string) time.Duration {
			unit := rapid.SampledFrom([]time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond}).Draw(t, name+" unit")
			return time.Duration(rapid.IntRange(1, 200).Draw(t, name)) * unit
		}
		b := Budget{Default: limit("default"), Most: limit("most")}
		ctx := context.Background()
		if rapid.Bool().Draw(t, "deadline") {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit("until"))
			defer cancel()
		}
		before := time.Now()
		whole, asking, cancel := b.split(ctx)
		defer cancel()
		end, _ := whole.Deadline()
		stop, _ := asking.Deadline()
		if callers, ok := ctx.Deadline(); ok && end.After(callers) || end.After(time.Now().Add(b.Most)) {
			t.Errorf("the call ends at %v; its caller wants an answer by %v and may have %v", end, callers, b.Most)
		}
		// The time left was measured between before and now, so it lies within these.
		most, least := end.Sub(before), time.Until(end)
		want := func(left time.Duration) time.Duration {
			return min(max(left/10, 5*time.Millisecond), 250*time.Millisecond, max(left/2, 0))
		}
		if kept := end.Sub(stop); kept < want(least) || kept > want(most) {
			t.Errorf("of %v to %v, %v are kept, want %v to %v", least, most, kept, want(least), want(most))
		}
	})
}
