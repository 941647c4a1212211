package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/shardio"
)

// Outcome is how a job ended. Every way has a name, and a counter.
type Outcome string

// Outcomes of jobs.
const (
	// Published a new generation.
	Published Outcome = "published"
	// Unchanged commits: only the root's epoch advanced.
	Unchanged Outcome = "unchanged"
	// Superseded: the request, or a newer one, is published already.
	Superseded Outcome = "superseded"
	// Deleted: the repo is not desired any more.
	Deleted Outcome = "deleted"
	// Failed for good, until somebody asks again.
	Failed Outcome = "failed"
	// Retried: it may go better at the next attempt.
	Retried Outcome = "retried"
	// Postponed for something that is not the repo's fault: etcd, the bucket, a
	// full disk, another job that has the lease.
	Postponed Outcome = "postponed"
	// Stopped because the process ends.
	Stopped Outcome = "stopped"
)

// How long a job that is postponed waits.
const (
	leasedWait  = 5 * time.Second
	brokenWait  = 10 * time.Second
	noSpaceWait = time.Minute
)

// judge decides what becomes of a job that failed, and notes it in the status.
// The lease is nil when the job got none.
func (w *Worker) judge(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, err error) (Outcome, error) {
	fail, isSource := errors.AsType[*gitsource.Failure](err)
	_, isStore := errors.AsType[*shardio.StoreError](err)
	_, isBuild := errors.AsType[*shardio.BuildError](err)
	switch {
	case errors.Is(err, catalog.ErrNotDesired):
		return Deleted, nil
	case ctx.Err() != nil:
		return Stopped, fmt.Errorf("stopped: %w", context.Cause(ctx))
	case errors.Is(err, catalog.ErrLeased):
		return Postponed, queue.Later(err, leasedWait)
	case errors.Is(err, catalog.ErrLeaseLost), errors.Is(err, catalog.ErrStale):
		return Postponed, queue.Later(err, time.Second)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), isSource && fail.Kind == gitsource.NoSpace:
		return w.postpone(ctx, d, lease, fmt.Errorf("the indexer's disk is full: %w", err), noSpaceWait)
	case isStore:
		return w.postpone(ctx, d, lease, err, brokenWait)
	case isSource && fail.Kind.Permanent(), errors.Is(err, catalog.ErrTooLarge):
		return w.fail(ctx, d, lease, err)
	case isSource, isBuild, errors.Is(err, errTimeout):
		return w.retry(ctx, d, lease, err)
	}
	return Postponed, queue.Later(err, brokenWait) // etcd
}

// retry lets the queue bring the job again, unless this was the last attempt.
func (w *Worker) retry(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, err error) (Outcome, error) {
	if d.NumDelivered >= w.Attempts {
		return w.fail(ctx, d, lease, fmt.Errorf("%w; tried %d times", err, d.NumDelivered))
	}
	w.noteRetry(ctx, d, lease, err)
	return Retried, err
}

func (w *Worker) postpone(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, err error, wait time.Duration) (Outcome, error) {
	w.noteRetry(ctx, d, lease, err)
	return Postponed, queue.Later(err, wait)
}

// fail makes the failure final. If that cannot be noted the job comes again:
// nobody would learn of it otherwise.
func (w *Worker) fail(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, err error) (Outcome, error) {
	noted := w.note(ctx, d, lease, ingestv1.State_STATE_FAILED, err.Error())
	if noted != nil && !errors.Is(noted, catalog.ErrStale) && !errors.Is(noted, catalog.ErrNotDesired) {
		return Postponed, queue.Later(errors.Join(err, noted), brokenWait)
	}
	return Failed, queue.Permanent(err)
}

// noteRetry says that the job comes again, and why. It is lost without harm.
func (w *Worker) noteRetry(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, err error) {
	_ = w.note(ctx, d, lease, ingestv1.State_STATE_QUEUED, "will be tried again: "+err.Error())
}

// maxReason bounds the reason in a status, in bytes.
const maxReason = 2000

// clip makes a reason fit for a record: text, and not too long.
func clip(reason string) string {
	if len(reason) > maxReason {
		reason = reason[:maxReason] + "…"
	}
	return strings.ToValidUTF8(reason, "\uFFFD")
}

// note writes the status of a job that did not publish.
func (w *Worker) note(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, state ingestv1.State, reason string) error {
	err := w.Store.PutStatus(ctx, d.Repo, &catalogv1.Status{
		State: state, Reason: clip(reason), Epoch: lease.Desired().GetEpoch(), Attempts: uint32(d.NumDelivered), UpdatedAt: timestamppb.Now(),
	}, lease)
	if err != nil {
		w.Log.InfoContext(ctx, "status not written", "repo", d.Repo, "error", err)
	}
	return err
}
