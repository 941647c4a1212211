package search

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTimeIsKeptForTheAnswer: asking searchers ends before the caller's deadline,
// by enough to merge and send and never by more than half of it, and no query
// gets more than is allowed.
func TestTimeIsKeptForTheAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := func(name string) time.Duration {
			return time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, name))
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
		left := end.Sub(before)
		if kept := end.Sub(stop); kept < leastReserve || kept > min(left/2, mostReserve) {
			t.Errorf("of %v, %v are kept", left, kept)
		}
	})
}
