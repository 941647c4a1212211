package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/trawl-search/trawl/internal/searchapi"
)

const (
	// admissionWeight is the weight of one shard in the moving mean of their times.
	admissionWeight = 1.0 / 64
	// admissionShare is the part of a call's time that it may wait for the calls before
	// it. It also waits for calls that arrive later: in a steady overload, as long again.
	admissionShare = 0.5
)

// admission refuses a call that would wait past its deadline. So under overload, work
// goes into answers that still arrive in time. Calls share the processors shard by
// shard: a call with few shards passes one with many, and waits for no more shards of
// another call than it has itself. It is safe for concurrent use.
type admission struct {
	parallel float64

	mu    sync.Mutex
	calls map[*admitted]struct{}
	// mean is the moving mean of the seconds that a shard takes a processor.
	mean float64
}

// admitted is a call that is being answered.
type admitted struct {
	to  *admission
	ctx context.Context //nolint:containedctx // it ends with the call
	// shards counts those that are not done.
	shards int
	// cost is what the call cost so far.
	cost searchapi.Cost
}

// ahead is how long the call delays another one of that many shards: by one shard for
// each of those, but not beyond its own deadline. A call that has ended delays nothing:
// its searches stop soon.
func (c *admitted) ahead(shards int) time.Duration {
	if c.ctx.Err() != nil {
		return 0
	}
	work := time.Duration(float64(min(c.shards, shards)) * c.to.mean / c.to.parallel * float64(time.Second))
	if deadline, ok := c.ctx.Deadline(); ok {
		return max(min(work, time.Until(deadline)), 0)
	}
	return work
}

func newAdmission(parallel int) *admission {
	return &admission{parallel: float64(parallel), calls: make(map[*admitted]struct{})}
}

// admit admits a call for that many shards, whose deadline is that of ctx. The caller
// must call end. The error is a status that says when to try again.
func (a *admission) admit(ctx context.Context, shards int) (*admitted, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, wait := 0, time.Duration(0)
	for c := range a.calls {
		if ahead := c.ahead(shards); ahead > 0 {
			before++
			wait += ahead
		}
	}
	if deadline, ok := ctx.Deadline(); ok && before > 0 {
		if spare := time.Duration(admissionShare * float64(time.Until(deadline))); wait > spare {
			return nil, searchapi.Overloaded(fmt.Sprintf(
				"%d calls are before this one, and its turn would come in %v, too late for its deadline", before, wait.Round(time.Millisecond)), wait-spare)
		}
	}
	c := &admitted{to: a, ctx: ctx, shards: shards}
	a.calls[c] = struct{}{}
	return c, nil
}

// done reports that one of the call's shards is done.
func (c *admitted) done() {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.shards--
}

// tookAlso adds the time that a shard had a processor after took counted its search.
func (c *admitted) tookAlso(took time.Duration) {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.cost.Processor += took
	c.to.mean += admissionWeight * took.Seconds()
}

// took records how long a shard had a processor.
func (c *admitted) took(took time.Duration) {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.cost.Processor += took
	c.to.mean += admissionWeight * (took.Seconds() - c.to.mean)
}

// decoded records that content was decompressed, in bytes.
func (c *admitted) decoded(bytes uint64) {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.cost.Decoded += bytes
}

// end ends the call, and reports to the router what it cost.
func (c *admitted) end() {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	delete(c.to.calls, c)
	_ = grpc.SetTrailer(c.ctx, c.cost.Trailer()) // fails only without a call of gRPC
}
