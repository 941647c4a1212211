package ingest

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// quota bounds the requests to index that each caller makes of one router. It is safe
// for concurrent use.
type quota struct {
	perMinute int
	rates     *access.Rates
}

func newQuota(perMinute int) *quota {
	return &quota{perMinute, access.NewRates(rate.Limit(float64(perMinute)/time.Minute.Seconds()), perMinute)}
}

// take counts a request to index. Its error, RESOURCE_EXHAUSTED, says when to come back.
// Administrators are not limited.
func (q *quota) take(ctx context.Context) error {
	caller, err := access.From(ctx)
	if err != nil || caller.May(access.ScopeAdmin) {
		return nil //nolint:nilerr // a call by nobody does not get this far
	}
	now := time.Now()
	turn := q.rates.Of(caller.ID()).ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	turn.CancelAt(now)
	return searchapi.Overloaded(fmt.Sprintf(
		"your token has asked for %d repos to be indexed within a minute, which is the limit of this router (repos-per-minute)", q.perMinute), wait)
}
