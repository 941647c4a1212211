package ingest

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// quota bounds the requests to index that each caller makes of one router, and the bytes that
// they take in etcd. It is safe for concurrent use.
type quota struct {
	perMinute int
	rates     *access.Rates
}

func newQuota(perMinute int) *quota {
	return &quota{perMinute, access.NewRates(rate.Limit(float64(perMinute)/time.Minute.Seconds()), perMinute)}
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
	turn := q.rates.Of(caller).ReserveN(now, min(1+bytes/unit, q.perMinute))
	wait := turn.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	turn.CancelAt(now)
	return searchapi.Overloaded(fmt.Sprintf(
		"your token has asked for %d repos to be indexed within a minute, which is the limit of this router (repos-per-minute); "+
			"each KiB of branches and facts counts as a repo", q.perMinute), wait)
}
