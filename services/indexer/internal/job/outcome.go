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

// Outcome is how a job ended. Each has a counter.
type Outcome string

// Outcomes of jobs.
const (
	// Published a new generation.
	Published Outcome = "published"
	// Unchanged: the commits are the same, and only the root's epoch advanced.
	Unchanged Outcome = "unchanged"
	// Superseded: this request or a newer one was published before.
	Superseded Outcome = "superseded"
	// Deleted: the repo is no longer desired.
	Deleted Outcome = "deleted"
	// Failed until the repo is requested again.
	Failed Outcome = "failed"
	// Retried: the next attempt may succeed.
	Retried Outcome = "retried"
	// Postponed for a cause outside the repo: etcd, the bucket, a full disk, a lease
	// that another job holds, or a request that is not due yet.
	Postponed Outcome = "postponed"
	// Stopped because the process ends.
	Stopped Outcome = "stopped"
)

// Waits of postponed jobs.
const (
	leasedWait  = 5 * time.Second
	brokenWait  = 10 * time.Second
	noSpaceWait = time.Minute
)

// resolveFailure maps the error of a job to its outcome and to what the queue does
// next, and writes the repo's status. The lease is nil if the job got none.
func (w *Worker) resolveFailure(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, err error) (Outcome, error) {
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
	case isSource && fail.Kind == gitsource.NoSpace:
		return w.postpone(ctx, d, lease, err, noSpaceWait)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
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

// retry lets the queue deliver the job again, unless this was the last attempt.
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

// fail makes the failure final. If the status cannot be written, the job is delivered
// again, so that the failure does not go unnoticed.
func (w *Worker) fail(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, err error) (Outcome, error) {
	fail, isSource := errors.AsType[*gitsource.Failure](err)
	noted := w.writeStatus(ctx, d, lease, &catalogv1.Status{
		State: ingestv1.State_STATE_FAILED, Reason: err.Error(), Unreachable: isSource && fail.Kind == gitsource.Unreachable,
	})
	if noted != nil && !errors.Is(noted, catalog.ErrStale) && !errors.Is(noted, catalog.ErrNotDesired) {
		return Postponed, queue.Later(errors.Join(err, noted), brokenWait)
	}
	return Failed, queue.Permanent(err)
}

// noteRetry writes into the status that the job will be tried again, and why. A
// failure does no harm.
func (w *Worker) noteRetry(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, err error) {
	_ = w.writeStatus(ctx, d, lease, &catalogv1.Status{State: ingestv1.State_STATE_QUEUED, Reason: "will be tried again: " + err.Error()})
}

// maxReason bounds the reason in a status, in bytes.
const maxReason = 2000

// clip bounds a reason and makes it valid UTF-8.
func clip(reason string) string {
	if len(reason) > maxReason {
		reason = reason[:maxReason] + "…"
	}
	return strings.ToValidUTF8(reason, "\uFFFD")
}

// writeStatus completes the status of a repo after a job, and writes it.
func (w *Worker) writeStatus(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, status *catalogv1.Status) error {
	status.Reason, status.Epoch = clip(status.GetReason()), lease.Desired().GetEpoch()
	status.Attempts, status.UpdatedAt = uint32(d.NumDelivered), timestamppb.Now()
	err := w.Store.PutStatus(ctx, d.Repo, status, lease)
	if err != nil {
		w.Log.InfoContext(ctx, "status not written", "repo", d.Repo, "error", err)
	}
	return err
}
