package job

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// errLost is the reason for giving up a request whose attempts kill their indexers.
var errLost = errors.New("indexers in a row died while they indexed this repo and no other")

// attempts records how the earlier attempts at a request ended.
//
// When an indexer dies, any of its jobs may have killed it. So none of them is blamed, and each is
// tried again alone: no other job runs in its indexer meanwhile. Only an indexer that dies then
// counts against the request.
type attempts struct {
	alone bool
	// lost counts the indexers in a row that died while the request had them for itself.
	lost uint32
}

// attemptsBefore reads from the status how the last attempt ended. The caller holds the lease, so
// if the status says that a job runs, its indexer is gone. Or it is this indexer, and a job here
// has lost its lease and does not know yet.
func (w *Worker) attemptsBefore(ctx context.Context, lease *catalog.Lease) (attempts, error) {
	status, err := w.Store.GetStatus(ctx, lease.Desired().GetName())
	switch last := status.Record; {
	case errors.Is(err, catalog.ErrNotFound):
		return attempts{}, nil
	case err != nil:
		return attempts{}, err
	case last.GetEpoch() != lease.Desired().GetEpoch():
		return attempts{}, nil
	case last.GetState() == ingestv1.State_STATE_FETCHING, last.GetState() == ingestv1.State_STATE_BUILDING:
		switch {
		case w.turns.has(lease.Desired().GetName()):
			return attempts{alone: last.GetAlone(), lost: last.GetLost()}, nil
		case last.GetAlone():
			return attempts{alone: true, lost: last.GetLost() + 1}, nil
		}
		return attempts{alone: true}, nil
	case last.GetState() == ingestv1.State_STATE_QUEUED:
		return attempts{alone: last.GetAlone(), lost: last.GetLost()}, nil
	}
	return attempts{}, nil
}

// turns lets jobs run in this indexer at the same time, or one of them alone. The zero value is
// ready.
type turns struct {
	mu sync.Mutex
	// running counts the jobs of a repo that have their turn. There can be two: one has lost
	// its lease and does not know yet.
	running map[string]int
	slots   *semaphore.Weighted
}

// everySlot is the number of slots that a job takes to run alone. Any other job takes
// one.
const everySlot = math.MaxInt64

// begin waits until a job may run, and returns the function that ends its turn. A job that
// must run alone waits for all running jobs, which are bounded in time. Later jobs wait for
// it.
func (t *turns) begin(ctx context.Context, repo string, alone bool) (end func(), err error) {
	t.mu.Lock()
	if t.slots == nil {
		t.slots, t.running = semaphore.NewWeighted(everySlot), map[string]int{}
	}
	t.mu.Unlock()
	need := int64(1)
	if alone {
		need = everySlot
	}
	if err := t.slots.Acquire(ctx, need); err != nil {
		return nil, fmt.Errorf("wait for other jobs: %w", err)
	}
	t.count(repo, 1)
	return func() {
		t.count(repo, -1)
		t.slots.Release(need)
	}, nil
}

func (t *turns) count(repo string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[repo] += n; t.running[repo] == 0 {
		delete(t.running, repo)
	}
}

// has reports whether a job of the repo has its turn.
func (t *turns) has(repo string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running[repo] > 0
}

// noteAlone writes into the status that the next attempt runs alone. If the write fails,
// the next attempt either counts this indexer as dead or does not run alone.
func (w *Worker) noteAlone(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, lost uint32, reason string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // the worker may be stopping
	defer cancel()
	_ = w.writeStatus(ctx, d, lease, &catalogv1.Status{State: ingestv1.State_STATE_QUEUED, Reason: reason, Alone: true, Lost: lost})
}
