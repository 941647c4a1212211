package access

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// TestRatesForgetIdleCallersOnly: idle callers do not take memory for ever, and a caller
// in debt stays in debt.
func TestRatesForgetIdleCallersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRates(func(string) (rate.Limit, int) { return 1, 10 })
		r.Of("debtor").ReserveN(time.Now(), 10)
		for i := range 3 * maxRates {
			if !r.Of(fmt.Sprint(i)).Allow() {
				t.Fatal("a new caller has nothing")
			}
			if i%100 == 0 { // the others have theirs back
				time.Sleep(time.Second)
				r.Of("debtor").Reserve()
			}
		}
		if n := len(r.callers); n > maxRates+100 {
			t.Errorf("%d callers are remembered", n)
		}
		if left := r.Of("debtor").Tokens(); left >= 1 {
			t.Errorf("the debtor has %v", left)
		}
	})
}

// TestRatesFollowWhatIsAllowed: a raised limit admits at once a caller who had used up the old one, a lowered one holds, and without
// one there is no bucket.
func TestRatesFollowWhatIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allowed := 2
		r := NewRates(func(string) (rate.Limit, int) { return rate.Limit(allowed), allowed })
		admitted := func() (n int) {
			for n < 100 && r.Of("a").Allow() {
				n++
			}
			return n
		}
		for _, allowed = range []int{2, 5, 1} {
			if n := admitted(); n != allowed {
				t.Errorf("%d at once, want %d", n, allowed)
			}
		}
		if allowed = 0; r.Of("a") != nil {
			t.Error("a bucket without a limit")
		}
		if allowed = 3; admitted() != 3 {
			t.Error("a limit after none does not hold")
		}
	})
}
