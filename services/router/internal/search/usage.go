package search

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/searchapi"
)

const (
	// usageBurst is the time whose allowance a caller can use at once.
	usageBurst = time.Minute
	// usageDebt bounds what one call to a searcher is charged, in bursts.
	usageDebt = 10
	// processorBytes is the content in bytes that may be decoded in a second for each
	// processor of a caller's allowance. It bounds queries that read much and compute little.
	processorBytes = 512 << 20
)

// usage bounds the work of searchers for each caller by token buckets. A query is admitted
// while the bucket is not empty, and is charged afterwards. A caller can overdraw its
// bucket, and then waits until the bucket has refilled. It is safe for concurrent use.
type usage struct {
	processor, decoded *access.Rates // microseconds and bytes
	metrics            *Metrics
}

// newUsage allows each caller that many processors, unless limits.CallerProcessors is set; zero is no limit.
func newUsage(processors float64, live *limits.Live, metrics *Metrics) *usage {
	allowance := func(of float64) *access.Rates {
		return access.NewRates(func(caller string) (rate.Limit, int) {
			perSecond := of * live.Number(limits.CallerProcessors, caller, processors)
			return rate.Limit(perSecond), max(int(perSecond*usageBurst.Seconds()), 1)
		})
	}
	return &usage{processor: allowance(1e6), decoded: allowance(processorBytes), metrics: metrics}
}

// bucket is nil for a caller without a limit.
func bucket(rates *access.Rates, caller string) *rate.Limiter {
	if caller == "" {
		return nil
	}
	return rates.Of(caller)
}

// check refuses a query of a caller who has used up an allowance; empty is a caller that is
// not known, who has no limit. The error is a status that says when to retry.
func (u *usage) check(class queryClass, caller string) error {
	wait, what := max(overdrawn(u.processor, caller), 0), "processor time (caller-processors)"
	if decoded := overdrawn(u.decoded, caller); decoded > wait {
		wait, what = decoded, "bytes of content read (caller-processors)"
	}
	if wait == 0 {
		return nil
	}
	u.metrics.shed(class, limitUsage)
	return searchapi.Overloaded(fmt.Sprintf("the queries of this token have used up its %s: retry in %v, and ask narrower queries or have the limit raised",
		what, wait.Round(time.Millisecond)), wait)
}

// overdrawn is the time until the bucket of a caller has something again.
func overdrawn(rates *access.Rates, caller string) time.Duration {
	limiter := bucket(rates, caller)
	if limiter == nil {
		return 0
	}
	return time.Duration(-limiter.Tokens() / float64(limiter.Limit()) * float64(time.Second))
}

// charge takes the cost of one call to a searcher from the buckets of a caller.
func (u *usage) charge(caller string, cost searchapi.Cost) {
	u.metrics.processor.Add(cost.Processor.Seconds())
	u.metrics.decoded.Add(float64(cost.Decoded))
	take(u.processor, caller, int(cost.Processor.Microseconds()))
	take(u.decoded, caller, int(cost.Decoded))
}

func take(rates *access.Rates, caller string, n int) {
	limiter := bucket(rates, caller)
	if limiter == nil {
		return
	}
	n = min(n, usageDebt*limiter.Burst())
	for now := time.Now(); n > 0; n -= limiter.Burst() { // one reservation holds no more than a full bucket
		limiter.ReserveN(now, min(n, limiter.Burst()))
	}
}

// computed charges the caller for what this router computed since then, at most one processor.
func (t *ticket) computed(since time.Time) {
	take(t.usage.processor, t.slot.caller, int(time.Since(since).Microseconds()))
}

// charge charges the caller for a call to a searcher that took that long. A call that the
// caller did not wait for has no account: it counts as one processor for all of its time.
func (t *ticket) charge(result *callResult, took time.Duration) {
	cost, reported := searchapi.CostOf(result.trailer)
	if !reported && t.callerLeft() {
		cost.Processor = took
	}
	t.usage.charge(t.slot.caller, cost)
}
