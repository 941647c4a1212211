package access

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestRatesForgetIdleCallersOnly: idle callers do not take memory for ever, and a caller
// in debt stays in debt.
func TestRatesForgetIdleCallersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRates(1, 10)
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
