// Package reconcile enqueues requests again that are not yet published, so that no
// request is lost if the queue loses messages.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

const (
	// maxWait bounds the time between two attempts to enqueue one request.
	maxWait = time.Hour
	// maxRetry bounds the time between two attempts at a request that fails, unless
	// RetryFailed or RetryUnreachable is longer.
	maxRetry = 24 * time.Hour
)

// Queue is the part of a queue that this package needs.
type Queue interface {
	queue.Publisher
	DeadLetter(ctx context.Context, repo string) (queue.DeadLetter, error)
	Depth(ctx context.Context) (queue.Depth, error)
}

// Reconciler compares the desired repos with the roots periodically. One runs in the
// leading indexer. Two at once do no harm, since a request that is enqueued twice is
// done once. A new leader knows nothing of what the previous one enqueued, and may
// enqueue it once more.
type Reconciler struct {
	Store *catalog.Store
	Queue Queue
	// Every is the time between two passes, plus or minus a quarter. It is also the age
	// at which a request is first enqueued again.
	Every time.Duration
	// RetryFailed is the time after which a failed request is tried again, and RetryUnreachable
	// that if its host cannot be reached. It doubles with each failure of the request, up to a day.
	RetryFailed, RetryUnreachable time.Duration
	Metrics                       *Metrics
	Log                           *slog.Logger

	pending map[string]pending
}

// pending says when a request is next enqueued. The wait doubles each time.
type pending struct {
	epoch uint64
	wait  time.Duration
	next  time.Time
	// isNew is true if the repo was never published.
	isNew bool
	// failed: at the last pass the request had failed, and no job was running for it.
	failed bool
}

// Run makes passes until the context ends.
func (r *Reconciler) Run(ctx context.Context) {
	defer r.Metrics.set(newTally())
	for wait.Sleep(ctx, wait.Jitter(r.Every, 4)) {
		if err := r.Pass(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.Log.WarnContext(ctx, "reconciling failed, trying again", "error", err)
		}
	}
}

// Pass checks every desired repo once. It is for one goroutine. It merges the pages of
// desired repos and of roots in the order of their names, so that it holds only the
// outstanding requests in memory.
//
// As long as the queue has a job for each of these, it has lost none, and enqueuing them again would only make a long queue longer: of 20,000 new
// repos, 11,400 had 42,900 jobs after a quarter of an hour, and a push waited behind all of them. Jobs of other requests may stand in place of a lost one,
// until they are done. A failed request has no job, and is enqueued when it is due.
func (r *Reconciler) Pass(ctx context.Context, now time.Time) error {
	depth, err := r.Queue.Depth(ctx) // before the list, from which more requests may be published
	if err != nil {
		return fmt.Errorf("count the jobs in the queue: %w", err)
	}
	seen := newTally()
	outstanding, queued, err := r.outstanding(ctx, now, &seen)
	if err != nil {
		return err
	}
	lost := depth.Jobs == 0 || depth.Jobs < queued
	for _, d := range outstanding {
		if lost || r.pending[d.GetName()].failed { // which has no job
			if err := r.requeue(ctx, now, d); err != nil {
				return err
			}
		}
	}
	for _, d := range outstanding {
		seen.add(r.pending[d.GetName()].failed, now.Sub(d.GetRequestedAt().AsTime()))
	}
	r.Metrics.set(seen)
	return nil
}

// outstanding returns the requests that are not published, and how many of those made before now must have a job: the others have failed.
func (r *Reconciler) outstanding(ctx context.Context, now time.Time, seen *tally) (found []*catalogv1.Desired, queued int, err error) {
	next, stop := iter.Pull2(r.Store.ListRoots(ctx))
	defer stop()
	published := merge{next: next}
	before := r.pending
	r.pending = make(map[string]pending)
	for desired, err := range r.Store.ListDesired(ctx) {
		if err != nil {
			return nil, 0, fmt.Errorf("list desired repos: %w", err)
		}
		d := desired.Record
		epoch, err := published.epoch(d.GetName())
		if err != nil {
			return nil, 0, fmt.Errorf("list roots: %w", err)
		}
		seen.lag(now, catalog.BehindSince(d, epoch))
		if epoch >= d.GetEpoch() {
			seen.published++
			continue
		}
		p := before[d.GetName()]
		if p.epoch != d.GetEpoch() {
			p = pending{epoch: d.GetEpoch(), wait: r.Every, next: d.GetRequestedAt().AsTime().Add(r.Every)}
			if latest := now.Add(r.Every); p.next.After(latest) { // the clock of the router that took it is ahead
				p.next = latest
			}
		}
		p.isNew = epoch == 0
		r.pending[d.GetName()], found = p, append(found, d)
		if !p.failed && d.GetRequestedAt().AsTime().Before(now) {
			queued++
		}
	}
	return found, queued, nil
}

// merge looks up roots by ascending names.
type merge struct {
	next func() (catalog.Root, error, bool)
	at   *catalogv1.Root // nil before the first and after the last
	done bool
}

// epoch returns the published epoch of a repo, 0 if it has no root.
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

// requeue enqueues one outstanding request if it is due.
func (r *Reconciler) requeue(ctx context.Context, now time.Time, d *catalogv1.Desired) error {
	p := r.pending[d.GetName()]
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
	// The attempt differs from that of earlier passes, and is the same in indexers
	// whose passes are at about the same time, so that the queue keeps one message.
	attempt := uint64(max(now.Unix(), 0)) / uint64(max(r.Every/time.Second, 1))
	if err := r.Queue.Publish(ctx, queue.Job{Repo: d.GetName(), Epoch: d.GetEpoch(), Attempt: attempt, Bulk: p.isNew}); err != nil {
		return fmt.Errorf("enqueue %q again: %w", d.GetName(), err)
	}
	r.Log.InfoContext(ctx, "request enqueued again", "repo", d.GetName(), "epoch", d.GetEpoch())
	r.Metrics.requeued.Inc()
	p.failed = false
	p.wait = wait.Double(p.wait, 1, maxWait)
	p.next = now.Add(p.wait)
	r.pending[d.GetName()] = p
	return nil
}

// due reports whether an outstanding request is to be enqueued, and whether it has
// failed. It is not due while a job runs or soon after a failure.
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
		return now.Sub(status.GetUpdatedAt().AsTime()) >= r.retryAfter(status), true, nil
	}
	givenUp, err := r.noteGivenUp(ctx, d, status)
	return !givenUp, givenUp, err
}

// retryAfter returns the wait after the newest failure of a request.
func (r *Reconciler) retryAfter(status *catalogv1.Status) time.Duration {
	first := r.RetryFailed
	if status.GetUnreachable() {
		first = r.RetryUnreachable
	}
	return wait.Double(first, max(status.GetFailures(), 1)-1, max(maxRetry, first))
}

// noteGivenUp writes a failure into the status of a repo whose job is a dead letter
// but whose status does not say so, because every worker died of it. It would be
// enqueued for ever otherwise.
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
