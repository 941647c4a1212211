package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/trawl-search/trawl/internal/searchapi"
)

const (
	// admissionWeight is how much one shard counts in the mean time of a shard.
	admissionWeight = 1.0 / 64
	// admissionShare is the part of a call's time within which its turn must
	// come. A call waits for what was admitted before it and for what comes
	// while it runs, which in a steady overload is as much again.
	admissionShare = 0.5
)

// admission refuses calls whose time would end before their turn came, so that
// under overload work is done for answers that still arrive. Calls take turns
// at the processors, shard by shard: one with few shards passes one with many,
// and waits for no more of another's shards than it has itself. It is safe for
// concurrent use.
type admission struct {
	parallel float64

	mu    sync.Mutex
	calls map[*admitted]struct{}
	// mean seconds that a shard takes a processor.
	mean float64
}

// admitted is a call that is being answered.
type admitted struct {
	to  *admission
	ctx context.Context //nolint:containedctx // it ends with the call
	// shards that are not done.
	shards int
}

// ahead is how long the call holds up one for so many shards: a shard of its own
// for each of those, but not beyond its deadline. A call whose time is over, or
// whose caller has gone, only takes until its searches notice.
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

// admit lets a call for so many shards begin, whose time is that of ctx; end must
// follow. The error is a status that says when to try again.
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

// done says that one of the call's shards waits no more.
func (c *admitted) done() {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.shards--
}

// tookAlso says that a shard had a processor for so long again, for the same call.
func (a *admission) tookAlso(took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mean += admissionWeight * took.Seconds()
}

// took says that a shard had a processor for so long.
func (a *admission) took(took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mean += admissionWeight * (took.Seconds() - a.mean)
}

func (c *admitted) end() {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	delete(c.to.calls, c)
}
