package compact

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

const (
	// maxPoll bounds the wait before a worker looks for work again.
	maxPoll = 15 * time.Second
	// minRetry and maxRetry bound the wait after an attempt of which nothing came;
	// it is four times as long after each.
	minRetry = time.Minute
	maxRetry = 6 * time.Hour
	// patience is how long after it was planned a compaction gives way to repos that
	// wait to be indexed, and to jobs of its indexer: an endless stream of them costs
	// it no more.
	patience = time.Hour
	// timeout bounds one compaction, its pauses included.
	timeout = 4 * time.Hour
	// settleTimeout bounds what is said after the end of a compaction.
	settleTimeout = 5 * time.Second
)

// Worker does compactions that are planned, one at a time.
type Worker struct {
	Config
	Store  *catalog.Store
	Bucket bucket.Bucket
	// TempDir has room for the shards that are merged, for the new one, and for what
	// merging does not hold in memory.
	TempDir string
	// LeaseTTL is how long a compaction waits for an indexer that died.
	LeaseTTL time.Duration
	// Waiting says whether repos wait to be indexed.
	Waiting func(ctx context.Context) bool
	// Jobs are those that this indexer has in hand.
	Jobs *Jobs
	// Version of this program, for manifests.
	Version string
	Metrics *Metrics
	Log     *slog.Logger

	// since is the fencing token of the compaction under way, 0 without one.
	since atomic.Int64
}

// Since is the newest revision, at most the one given, as of which nothing of a
// deleted repo is being compacted here. The revision was read before the call.
func (w *Worker) Since(revision int64) int64 {
	if since := w.since.Load(); since > 0 {
		return min(since, revision)
	}
	return revision
}

// Run does what is planned until ctx ends.
func (w *Worker) Run(ctx context.Context) {
	if w.Every == 0 {
		return
	}
	poll := min(w.Every/4, maxPoll)
	for ctx.Err() == nil {
		more, err := w.Next(ctx)
		if err != nil && ctx.Err() == nil {
			w.Log.WarnContext(ctx, "compacting failed, trying again", "error", err)
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll/2 + rand.N(poll)):
		}
	}
}

// Next does one compaction, if one is due, and says whether it did.
func (w *Worker) Next(ctx context.Context) (did bool, err error) {
	all, err := w.Store.ListCompactions(ctx)
	if err != nil {
		return false, err
	}
	now := time.Now()
	waiting := len(all) > 0 && (w.Jobs.ended() != nil || w.Waiting(ctx))
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, pressing := range []bool{true, false} {
		for _, c := range all {
			late := !now.Before(lateAt(c.Record, now))
			if c.Claimed || c.Record.GetPressing() != pressing || waiting && !late || now.Before(c.Record.GetNotBefore().AsTime()) {
				continue
			}
			claim, err := w.Store.Claim(ctx, c, w.LeaseTTL, now.Add(retryAfter(c.Record.GetAttempts())))
			if errors.Is(err, catalog.ErrLeased) || errors.Is(err, catalog.ErrStale) {
				continue // another one has it, or has done it
			}
			if err != nil {
				return false, err
			}
			return true, w.claimed(ctx, claim)
		}
	}
	return false, nil
}

// lateAt is when a compaction goes before jobs. A plan of the future, by a clock
// that is wrong, is as one of now.
func lateAt(c *catalogv1.Compaction, now time.Time) time.Time {
	if c.GetPressing() {
		return now
	}
	planned := c.GetPlannedAt().AsTime()
	if planned.After(now) {
		planned = now
	}
	return planned.Add(patience)
}

// retryAfter is the wait after an attempt, with so many before it.
func retryAfter(attempts uint32) time.Duration {
	return min(minRetry<<min(2*attempts, 20), maxRetry)
}

// claimed does the compaction as long as the claim is held.
func (w *Worker) claimed(ctx context.Context, claim *catalog.Claim) error {
	start := time.Now()
	w.since.Store(claim.Fence())
	defer w.since.Store(0)
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running, stop := context.WithTimeout(running, timeout)
	defer stop()
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		select {
		case <-claim.Lost():
			cancel(catalog.ErrLeaseLost)
		case <-running.Done():
		}
	}()
	m := &merging{Worker: w, claim: claim, pacer: newPacer(int64(w.Rate)), late: lateAt(claim.Work(), start)}
	outcome, err := m.run(running)
	if cause := context.Cause(running); err != nil && cause != nil {
		err = cause
	}
	cancel(nil)
	<-lost
	after, end := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer end()
	switch {
	case err == nil:
		err = claim.Done(after)
	case ctx.Err() != nil:
		outcome = stopped
	case errors.Is(err, catalog.ErrLeaseLost):
		outcome = lostClaim
	default:
		outcome = failed
		err = errors.Join(err, claim.Failed(after, err))
	}
	err = errors.Join(err, claim.Release(after))
	w.Metrics.done(outcome, claim.Work().GetReason(), time.Since(start), m)
	w.Log.InfoContext(ctx, "compaction ended", "reason", claim.Work().GetReason(), "outcome", outcome, "repos", m.compacted,
		"left", m.left, "read_bytes", m.read.Load(), "written_bytes", m.written, "seconds", time.Since(start).Seconds(),
		"paused_seconds", time.Duration(m.paused.Load()).Seconds())
	return err
}
