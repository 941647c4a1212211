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
	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

const (
	// maxPoll bounds the wait between two looks for work.
	maxPoll = 15 * time.Second
	// minRetry and maxRetry bound the wait after a failed attempt, which quadruples
	// with each.
	minRetry = time.Minute
	maxRetry = 6 * time.Hour
	// patience is how long after its planning a compaction gives way to jobs and to
	// repos in the queue, so that an endless stream of them does not starve it.
	patience = time.Hour
	// timeout bounds one compaction, its pauses included.
	timeout = 4 * time.Hour
	// settleTimeout bounds recording how a compaction ended.
	settleTimeout = 5 * time.Second
)

// Worker carries out planned compactions, one at a time.
type Worker struct {
	Config
	Store  *catalog.Store
	Bucket bucket.Bucket
	// TempDir needs room for the merged shards, the new one, and what merging spills
	// from memory.
	TempDir string
	// LeaseTTL is how long a compaction stays claimed after its indexer died.
	LeaseTTL time.Duration
	// Waiting reports whether repos are in the queue that no indexer has taken.
	Waiting func(ctx context.Context) bool
	// Jobs counts the running jobs of this indexer.
	Jobs *Jobs
	// Version of this program, for manifests.
	Version string
	Metrics *Metrics
	Log     *slog.Logger

	// since is the fencing token of the running compaction, or a revision before that of the one that
	// is being claimed; 0 without one.
	since atomic.Int64
}

// Since returns the newest revision, at most the given one, such that no repo deleted
// by then is part of a running compaction of this worker. The given revision must have
// been read before the call.
func (w *Worker) Since(revision int64) int64 {
	if since := w.since.Load(); since > 0 {
		return min(since, revision)
	}
	return revision
}

// Run carries out planned compactions until ctx ends.
func (w *Worker) Run(ctx context.Context) {
	if w.Every == 0 {
		return
	}
	poll := min(w.Every/4, maxPoll)
	for ctx.Err() == nil {
		did, err := w.Next(ctx)
		if err != nil && ctx.Err() == nil {
			w.Log.WarnContext(ctx, "compacting failed, trying again", "error", err)
		}
		if !did || err != nil {
			wait.Sleep(ctx, wait.Jitter(poll, 2))
		}
	}
}

// Next carries out one compaction if one is due, and reports whether it did.
func (w *Worker) Next(ctx context.Context) (did bool, err error) {
	all, err := w.Store.ListCompactions(ctx)
	if err != nil {
		return false, err
	}
	now := time.Now()
	waiting := len(all) > 0 && (w.Jobs.idleC() != nil || w.Waiting(ctx))
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, pressing := range []bool{true, false} {
		for _, c := range all {
			late := !now.Before(lateAt(c.Record, now))
			if c.Claimed || c.Record.GetPressing() != pressing || waiting && !late || now.Before(c.Record.GetNotBefore().AsTime()) {
				continue
			}
			// etcd may grant the claim long before its answer is here, and a disk that is reported clean
			// meanwhile must not be clean of repos that this compaction will have on it.
			w.since.Store(c.Revision)
			claim, err := w.Store.Claim(ctx, c, w.LeaseTTL, now.Add(retryAfter(c.Record.GetAttempts())))
			if err != nil {
				w.since.Store(0)
			}
			if errors.Is(err, catalog.ErrLeased) || errors.Is(err, catalog.ErrStale) {
				continue // another indexer claimed it or is done with it
			}
			if err != nil {
				return false, err
			}
			return true, w.compact(ctx, claim)
		}
	}
	return false, nil
}

// lateAt returns when a compaction stops giving way to jobs. A plan from the future,
// which another clock made, counts as made now.
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

// retryAfter returns the wait after a failed attempt that had this many before it.
func retryAfter(attempts uint32) time.Duration {
	return wait.Double(minRetry, 2*min(attempts, 16), maxRetry)
}

// compact carries out the claimed compaction while the claim is held, and records how
// it ended.
func (w *Worker) compact(ctx context.Context, claim *catalog.Claim) error {
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
	m := &merging{Worker: w, claim: claim, pacer: newPacer(w.Rate), late: lateAt(claim.Work(), start)}
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
