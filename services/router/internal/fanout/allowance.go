package fanout

import "sync"

// burst is how much of an allowance is kept when little is needed, in calls; more
// when one query of very many searchers earns more.
const burst = 20

// allowance is a token bucket that holds repeated work to a share of the first
// calls: each of those earns the share, and repeating a call costs one. It is
// safe for concurrent use.
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

// spend takes the cost, in calls: a call that repeats a part of another one's
// shards costs that part. It says whether that was affordable.
func (a *allowance) spend(cost float64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls < cost {
		return false
	}
	a.calls -= cost
	return true
}
