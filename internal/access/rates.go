package access

import (
	"sync"

	"golang.org/x/time/rate"
)

// maxRates is the number of callers above which Rates forgets callers whose buckets
// are full.
const maxRates = 1024

// Rates are token buckets, one for each caller. They are safe for concurrent use.
type Rates struct {
	perSecond rate.Limit
	burst     int

	mu      sync.Mutex
	callers map[string]*rate.Limiter // by the principal's ID
}

// NewRates makes buckets that begin with burst tokens and get perSecond more each
// second.
func NewRates(perSecond rate.Limit, burst int) *Rates {
	return &Rates{perSecond: perSecond, burst: burst, callers: make(map[string]*rate.Limiter)}
}

// Of is the bucket of a caller.
func (r *Rates) Of(caller string) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	limiter := r.callers[caller]
	if limiter == nil {
		r.forgetIdle()
		limiter = rate.NewLimiter(r.perSecond, r.burst)
		r.callers[caller] = limiter
	}
	return limiter
}

// forgetIdle drops the callers whose buckets are full, once there are many.
func (r *Rates) forgetIdle() {
	if len(r.callers) < maxRates {
		return
	}
	for caller, limiter := range r.callers {
		if limiter.Tokens() >= float64(r.burst) {
			delete(r.callers, caller)
		}
	}
}
