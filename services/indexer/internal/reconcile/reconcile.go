// Package reconcile re-enqueues what is desired and not yet published, so that
// a queue that lost its messages loses no request.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

const (
	// maxWait bounds the time between two enqueuings of one request.
	maxWait = time.Hour
	// maxRetry bounds the time after which a request that has failed often is
	// tried again, unless RetryFailed is longer.
	maxRetry = 24 * time.Hour
)

// Queue is the part of a queue that this package needs.
type Queue interface {
	Publish(ctx context.Context, job queue.Job) error
	DeadLetter(ctx context.Context, repo string) (queue.DeadLetter, error)
}

// Reconciler compares the desired repos with the roots again and again. One runs
// in the indexer that leads; two at once do no harm, since a request that is
// enqueued twice is done once. A new leader begins without memory, so that it may
// enqueue once what the one before had enqueued.
type Reconciler struct {
	Store *catalog.Store
	Queue Queue
	// Every is the time between two passes, give or take a quarter. A request
	// is first enqueued again when it is as old.
	Every time.Duration
	// RetryFailed is how long after its failure a failed request is tried
	// again: what was missing may be there by then. It doubles with each failure
	// of the request, up to a day.
	RetryFailed time.Duration
	Metrics     *Metrics
	Log         *slog.Logger

	pending map[string]pending
}

// pending is when a request is next enqueued: after each time it takes twice as
// long, so that a long queue does not grow by its own waiting.
type pending struct {
	epoch uint64
	wait  time.Duration
	next  time.Time
	// failed says that nothing is under way for it, as it was last looked at.
	failed bool
}

// Run makes passes until the context ends.
func (r *Reconciler) Run(ctx context.Context) {
	defer r.Metrics.tell(newTally())
	for {
		wait := r.Every*3/4 + rand.N(r.Every/2+1)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := r.Pass(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.Log.WarnContext(ctx, "reconciling failed, trying again", "error", err)
		}
	}
}

// Pass looks at every desired repo once. It is for one goroutine. Desired repos
// and roots come page by page in the order of their names, side by side, so that
// it holds only what is outstanding.
func (r *Reconciler) Pass(ctx context.Context, now time.Time) error {
	next, stop := iter.Pull2(r.Store.ListRoots(ctx))
	defer stop()
	published := merge{next: next}
	before := r.pending
	r.pending = make(map[string]pending)
	seen := newTally()
	for desired, err := range r.Store.ListDesired(ctx) {
		if err != nil {
			return fmt.Errorf("listing desired repos: %w", err)
		}
		d := desired.Record
		epoch, err := published.epoch(d.GetName())
		if err != nil {
			return fmt.Errorf("listing roots: %w", err)
		}
		seen.lag(now, catalog.BehindSince(d, epoch))
		if epoch >= d.GetEpoch() {
			seen.published++
			continue
		}
		if err := r.look(ctx, now, d, before[d.GetName()]); err != nil {
			return err
		}
		seen.add(r.pending[d.GetName()].failed, now.Sub(d.GetRequestedAt().AsTime()))
	}
	r.Metrics.tell(seen)
	return nil
}

// merge follows the roots to ascending names.
type merge struct {
	next func() (catalog.Root, error, bool)
	at   *catalogv1.Root // nil before the first and after the last
	done bool
}

// epoch is the published epoch of a repo, 0 if it has no root.
func (m *merge) epoch(name string) (uint64, error) {
	for !m.done && m.at.GetRepo() < name {
		root, err, more := m.next()
		if err != nil {
			return 0, err
		}
		m.at, m.done = root.Record, !more
	}
	if m.at.GetRepo() != name {
		return 0, nil
	}
	return m.at.GetEpoch(), nil
}

// look enqueues one outstanding request when its time has come.
func (r *Reconciler) look(ctx context.Context, now time.Time, d *catalogv1.Desired, p pending) error {
	if p.epoch != d.GetEpoch() {
		p = pending{epoch: d.GetEpoch(), wait: r.Every, next: d.GetRequestedAt().AsTime().Add(r.Every)}
	}
	r.pending[d.GetName()] = p
	if now.Before(p.next) {
		return nil
	}
	due, failed, err := r.due(ctx, now, d)
	if err != nil {
		return err
	}
	if p.failed = failed; !due {
		r.pending[d.GetName()] = p
		return nil
	}
	// The attempt differs from that of earlier passes, and is the same in all
	// indexers that look at about the same time.
	attempt := uint64(max(now.Unix(), 0)) / uint64(max(r.Every/time.Second, 1))
	if err := r.Queue.Publish(ctx, queue.Job{Repo: d.GetName(), Epoch: d.GetEpoch(), Attempt: attempt}); err != nil {
		return fmt.Errorf("enqueuing %q: %w", d.GetName(), err)
	}
	r.Log.InfoContext(ctx, "request enqueued again", "repo", d.GetName(), "epoch", d.GetEpoch())
	r.Metrics.requeued.Inc()
	p.failed = false
	p.wait = min(2*p.wait, maxWait)
	p.next = now.Add(p.wait)
	r.pending[d.GetName()] = p
	return nil
}

// due says whether an outstanding request is neither under way nor only just
// failed, and whether it has failed.
func (r *Reconciler) due(ctx context.Context, now time.Time, d *catalogv1.Desired) (due, failed bool, err error) {
	leased, err := r.Store.Leased(ctx, d.GetName())
	if err != nil || leased {
		return false, false, err
	}
	stored, err := r.Store.GetStatus(ctx, d.GetName())
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return false, false, err
	}
	status := stored.Record
	if failed := status.GetState() == ingestv1.State_STATE_FAILED && status.GetEpoch() == d.GetEpoch(); failed {
		return now.Sub(status.GetUpdatedAt().AsTime()) >= r.retryAfter(status.GetFailures()), true, nil
	}
	givenUp, err := r.noteGivenUp(ctx, d, status)
	return !givenUp, givenUp, err
}

// retryAfter is the wait after the nth failure of a request.
func (r *Reconciler) retryAfter(failures uint32) time.Duration {
	wait := r.RetryFailed
	for range max(failures, 1) - 1 {
		if wait >= maxRetry/2 {
			return max(maxRetry, r.RetryFailed)
		}
		wait *= 2
	}
	return wait
}

// noteGivenUp makes a failure of a dead letter that no status tells of: that of a
// repo whose job no worker survived. Else it would be enqueued for ever.
func (r *Reconciler) noteGivenUp(ctx context.Context, d *catalogv1.Desired, status *catalogv1.Status) (bool, error) {
	letter, err := r.Queue.DeadLetter(ctx, d.GetName())
	if errors.Is(err, queue.ErrNoLetter) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if letter.Epoch != d.GetEpoch() || status != nil && !letter.Time.After(status.GetUpdatedAt().AsTime()) {
		return false, nil
	}
	err = r.Store.PutStatus(ctx, d.GetName(), &catalogv1.Status{
		State: ingestv1.State_STATE_FAILED, Reason: letter.Reason, Epoch: letter.Epoch,
		Attempts: uint32(letter.NumDelivered), UpdatedAt: timestamppb.New(letter.Time),
	}, nil)
	if errors.Is(err, catalog.ErrStale) || errors.Is(err, catalog.ErrNotDesired) {
		return true, nil // there is something newer
	}
	return true, err
}
