package ingest

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// quota bounds the requests to index that each caller makes of one router, and the bytes that
// they take in etcd. It is safe for concurrent use.
type quota struct{ rates *access.Rates }

// newQuota allows each caller that many requests in a minute, unless limits.ReposPerMinute is set.
func newQuota(perMinute int, live *limits.Live) *quota {
	return &quota{access.NewRates(func(caller string) (rate.Limit, int) {
		most := live.Whole(limits.ReposPerMinute, caller, perMinute)
		return rate.Limit(float64(most) / time.Minute.Seconds()), most
	})}
}

// unit is how many bytes of a record count as a request.
const unit = 1 << 10

// take counts a request to index, and each further KiB of its record as another one. Its error, RESOURCE_EXHAUSTED, says when to come back.
// Administrators are not limited.
func (q *quota) take(ctx context.Context, bytes int) error {
	caller := limited(ctx)
	if caller == "" {
		return nil
	}
	now := time.Now()
	limiter := q.rates.Of(caller)
	turn := limiter.ReserveN(now, min(1+bytes/unit, limiter.Burst()))
	wait := turn.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	turn.CancelAt(now)
	return searchapi.Overloaded(fmt.Sprintf(
		"your token has asked for %d repos to be indexed within a minute, which is the limit of this router (repos-per-minute); "+
			"each KiB of branches and facts counts as a repo", limiter.Burst()), wait)
}
