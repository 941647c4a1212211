package fanout

import "sync"

// burst is how many calls an allowance saves up. A query of very many searchers may earn
// more at once.
const burst = 20

// allowance is a token bucket that limits repeated calls to a share of first calls. Each
// first call earns the share, and each repeated call costs one. It is safe for
// concurrent use.
type allowance struct {
	share float64

	mu    sync.Mutex
	calls float64
}

func newAllowance(share float64) *allowance {
	a := &allowance{share: share}
	if share > 0 {
		a.calls = burst
	}
	return a
}

func (a *allowance) earn(calls int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	earned := a.share * float64(calls)
	a.calls = min(a.calls+earned, max(burst, earned))
}

// spend takes the cost in calls, and reports whether the allowance covered it. A call
// that repeats part of another call's shards costs that part.
func (a *allowance) spend(cost float64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls < cost {
		return false
	}
	a.calls -= cost
	return true
}
