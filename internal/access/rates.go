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
	allowed func(caller string) (perSecond rate.Limit, burst int)

	mu      sync.Mutex
	callers map[string]*rate.Limiter // by the principal's ID
}

// NewRates makes buckets that begin with burst tokens and get perSecond more each
// second, as allowed says at the time of use. It must be safe for concurrent use; perSecond 0 is no limit.
func NewRates(allowed func(caller string) (perSecond rate.Limit, burst int)) *Rates {
	return &Rates{allowed: allowed, callers: make(map[string]*rate.Limiter)}
}

// Of is the bucket of a caller, nil if it has no limit. When what is allowed changes, the caller gets a new one, which is
// full: so a raised limit admits at once a caller who had used up the old one.
func (r *Rates) Of(caller string) *rate.Limiter {
	perSecond, burst := r.allowed(caller)
	r.mu.Lock()
	defer r.mu.Unlock()
	if perSecond <= 0 {
		delete(r.callers, caller)
		return nil
	}
	limiter := r.callers[caller]
	if limiter == nil || limiter.Limit() != perSecond || limiter.Burst() != burst {
		r.forgetIdle()
		limiter = rate.NewLimiter(perSecond, burst)
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
		if limiter.Tokens() >= float64(limiter.Burst()) {
			delete(r.callers, caller)
		}
	}
}
