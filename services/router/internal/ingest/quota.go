package ingest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// maxCallers is how many callers a quota remembers before it forgets those who have all
// of their requests left.
const maxCallers = 1024

// quota bounds the requests to index that each caller makes of one router. It is safe
// for concurrent use.
type quota struct {
	perMinute int

	mu      sync.Mutex
	callers map[string]*rate.Limiter // by the principal's name
}

// take counts a request to index. Its error, RESOURCE_EXHAUSTED, says when to come back.
// Administrators are not limited.
func (q *quota) take(ctx context.Context) error {
	caller, err := access.From(ctx)
	if err != nil || caller.May(access.ScopeAdmin) {
		return nil //nolint:nilerr // a call by nobody does not get this far
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	limiter := q.callers[caller.Name()]
	if limiter == nil {
		q.forgetIdle()
		limiter = rate.NewLimiter(rate.Limit(float64(q.perMinute)/time.Minute.Seconds()), q.perMinute)
		q.callers[caller.Name()] = limiter
	}
	now := time.Now()
	turn := limiter.ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	turn.CancelAt(now)
	return searchapi.Overloaded(fmt.Sprintf(
		"your token has asked for %d repos to be indexed within a minute, which is the limit of this router (repos-per-minute)", q.perMinute), wait)
}

// forgetIdle drops the callers who have all of their requests left, once there are many.
func (q *quota) forgetIdle() {
	if len(q.callers) < maxCallers {
		return
	}
	for name, limiter := range q.callers {
		if limiter.Tokens() >= float64(q.perMinute) {
			delete(q.callers, name)
		}
	}
}
