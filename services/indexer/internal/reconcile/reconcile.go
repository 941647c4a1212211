// Package reconcile re-enqueues what is desired and not yet published, so that
// a queue that lost its messages loses no request.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// maxWait bounds the time between two enqueuings of one request.
const maxWait = time.Hour

// Publisher is the part of a queue that this package needs.
type Publisher interface {
	Publish(ctx context.Context, job queue.Job) error
}

// Reconciler compares the desired repos with the roots again and again. One
// runs in each indexer; several do no harm, since a request that is enqueued
// twice is done once.
type Reconciler struct {
	Store *catalog.Store
	Queue Publisher
	// Every is the time between two passes, give or take a quarter. A request
	// is first enqueued again when it is as old.
	Every time.Duration
	// RetryFailed is how long after its failure a failed request is tried
	// again: what was missing may be there by then.
	RetryFailed time.Duration
	Log         *slog.Logger

	pending map[string]pending
}

// pending is when a request is next enqueued: after each time it takes twice as
// long, so that a long queue does not grow by its own waiting.
type pending struct {
	epoch uint64
	wait  time.Duration
	next  time.Time
}

// Run makes passes until the context ends.
func (r *Reconciler) Run(ctx context.Context) {
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

// Pass looks at every desired repo once. It is for one goroutine.
func (r *Reconciler) Pass(ctx context.Context, now time.Time) error {
	published := make(map[string]uint64)
	for root, err := range r.Store.ListRoots(ctx) {
		if err != nil {
			return fmt.Errorf("listing roots: %w", err)
		}
		published[root.Record.GetRepo()] = root.Record.GetEpoch()
	}
	before := r.pending
	r.pending = make(map[string]pending)
	for desired, err := range r.Store.ListDesired(ctx) {
		if err != nil {
			return fmt.Errorf("listing desired repos: %w", err)
		}
		d := desired.Record
		if published[d.GetName()] >= d.GetEpoch() {
			continue
		}
		if err := r.look(ctx, now, d, before[d.GetName()]); err != nil {
			return err
		}
	}
	return nil
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
	due, err := r.due(ctx, now, d)
	if err != nil || !due {
		return err
	}
	// The attempt differs from that of earlier passes, and is the same in all
	// indexers that look at about the same time.
	attempt := uint64(max(now.Unix(), 0)) / uint64(max(r.Every/time.Second, 1))
	if err := r.Queue.Publish(ctx, queue.Job{Repo: d.GetName(), Epoch: d.GetEpoch(), Attempt: attempt}); err != nil {
		return fmt.Errorf("enqueuing %q: %w", d.GetName(), err)
	}
	r.Log.InfoContext(ctx, "request enqueued again", "repo", d.GetName(), "epoch", d.GetEpoch())
	p.wait = min(2*p.wait, maxWait)
	p.next = now.Add(p.wait)
	r.pending[d.GetName()] = p
	return nil
}

// due says whether an outstanding request is neither under way nor only just
// failed.
func (r *Reconciler) due(ctx context.Context, now time.Time, d *catalogv1.Desired) (bool, error) {
	leased, err := r.Store.Leased(ctx, d.GetName())
	if err != nil || leased {
		return false, err
	}
	status, err := r.Store.GetStatus(ctx, d.GetName())
	if errors.Is(err, catalog.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	failed := status.Record.GetState() == ingestv1.State_STATE_FAILED && status.Record.GetEpoch() == d.GetEpoch()
	return !failed || now.Sub(status.Record.GetUpdatedAt().AsTime()) >= r.RetryFailed, nil
}
