// Package job indexes one repo: it takes the repo's lease, fetches its branches,
// builds and uploads shards, and publishes them as the repo's next generation.
//
// Any indexer may stop a job at any point and repeat it. Objects that an unfinished
// job uploaded become garbage, a damaged mirror is fetched anew, and the one
// transaction that publishes succeeds only for the holder of the lease, and only on
// the root that the job started from.
package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Config holds the settings of jobs.
type Config struct {
	// Timeout bounds one job.
	Timeout time.Duration
	// LeaseTTL is how long a repo stays leased after its indexer died.
	LeaseTTL time.Duration
	// Attempts bounds how often a job is tried before a temporary failure is final.
	Attempts int
	Limits   gitsource.Limits
	Build    build.Options
	// Version of this program, for manifests.
	Version string
}

// Worker does jobs. It is safe for concurrent use.
type Worker struct {
	Config
	Store   *catalog.Store
	Queue   *queue.Queue
	Bucket  bucket.Bucket
	Fetcher *gitsource.Fetcher
	Mirrors *Mirrors
	// Waiting reports whether repos are in the queue that no indexer has taken.
	Waiting func(ctx context.Context) bool
	Log     *slog.Logger
	Tracer  trace.Tracer
	Metrics *Metrics

	turns turns
	packs packer
}

// releaseTimeout bounds giving back a lease or a claim.
const releaseTimeout = 5 * time.Second

// Handle does the job of a delivery. It is a queue.Handler. Metrics, the log and the
// trace record how the job ended.
func (w *Worker) Handle(ctx context.Context, d *queue.Delivery) error {
	ctx, span := w.Tracer.Start(ctx, "index repo", trace.WithAttributes(
		attribute.String("trawl.repo", d.Repo), attribute.Int64("trawl.epoch", int64(d.Epoch))))
	defer span.End()
	start := time.Now()
	w.Metrics.running.Inc()
	defer w.Metrics.running.Dec()
	outcome, err := w.handle(ctx, d)
	w.Metrics.done(outcome, time.Since(start))
	span.SetAttributes(attribute.String("trawl.outcome", string(outcome)))
	log := w.Log.With("repo", d.Repo, "epoch", d.Epoch, "attempt", d.NumDelivered, "outcome", outcome, "seconds", time.Since(start).Seconds())
	if err != nil {
		span.SetStatus(codes.Error, "")
		log.WarnContext(ctx, "job not done", "error", err)
		return err
	}
	log.InfoContext(ctx, "job done")
	return nil
}

func (w *Worker) handle(ctx context.Context, d *queue.Delivery) (Outcome, error) {
	lease, err := w.Store.AcquireLease(ctx, d.Repo, w.LeaseTTL)
	if err != nil {
		return w.resolveFailure(ctx, d, nil, err)
	}
	defer func() {
		// If this fails, the next job waits for the lease's ttl. The job's own context
		// may have ended.
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		if err := lease.Release(release); err != nil {
			w.Log.WarnContext(ctx, "lease not released", "repo", d.Repo, "error", err)
		}
	}()
	desired := lease.Desired()
	if root := lease.Root(); root != nil && root.Record.GetEpoch() >= min(d.Epoch, desired.GetEpoch()) {
		return Superseded, nil
	}
	if wait := untilTurn(desired); wait > 0 {
		return Postponed, queue.Later(errEarly, min(wait, maxEarly))
	}
	before, err := w.attemptsBefore(ctx, lease)
	if err != nil {
		return w.resolveFailure(ctx, d, lease, err)
	}
	if before.lost >= uint32(w.Attempts) {
		return w.fail(ctx, d, lease, fmt.Errorf(
			"%d %w, probably for want of memory: give indexers more memory, or leave the repo out", before.lost, errLost))
	}
	outcome, err := w.inTurn(ctx, d, lease, before)
	fail, isSource := errors.AsType[*gitsource.Failure](err)
	switch {
	case err == nil:
		return outcome, nil
	case ctx.Err() != nil && before.alone:
		w.noteAlone(ctx, d, lease, before.lost, "will be tried again: its indexer was stopped")
	case isSource && fail.Kind == gitsource.Killed && !before.alone:
		w.noteAlone(ctx, d, lease, 0, "will be tried again without other jobs at the same time: "+err.Error())
		return Postponed, queue.Later(err, leasedWait)
	case errors.Is(err, errPackNotBuilt):
		w.noteAlone(ctx, d, lease, 0, "will be tried again without other repos: "+err.Error())
		return Postponed, queue.Later(err, leasedWait)
	}
	return w.resolveFailure(ctx, d, lease, err)
}

// errEarly is why a job is postponed until Desired.not_before.
var errEarly = errors.New("the repo was requested shortly before: its pushes are indexed together")

// maxEarly is after how much of that wait the job is looked at again, and how far the clock may be behind that of the process that set it.
const maxEarly = time.Minute

// untilTurn is how long a request waits for its turn. One from the future does not: it would wait for as long as the
// clock of the process that made it is ahead.
func untilTurn(d *catalogv1.Desired) time.Duration {
	if d.GetNotBefore() == nil || time.Until(d.GetRequestedAt().AsTime()) > maxEarly {
		return 0
	}
	return time.Until(d.GetNotBefore().AsTime())
}

// errTimeout is the cause of a job that reached its time limit.
var errTimeout = errors.New("the job took longer than its time limit")

// inTurn does the job when its turn comes, while the lease is held.
func (w *Worker) inTurn(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, before attempts) (Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-lease.Lost():
			cancel(catalog.ErrLeaseLost)
		case <-ctx.Done():
		}
	}()
	end, err := w.turns.begin(ctx, d.Repo, before.alone)
	if err != nil {
		return "", context.Cause(ctx)
	}
	defer end()
	return w.index(ctx, d, lease, before)
}

// index does the job within its time limit.
func (w *Worker) index(ctx context.Context, d *queue.Delivery, lease *catalog.Lease, before attempts) (Outcome, error) {
	ctx, stop := context.WithTimeoutCause(ctx, w.Timeout, errTimeout)
	defer stop()
	t := &task{Worker: w, delivery: d, lease: lease, desired: lease.Desired(), alone: before.alone}
	t.status = startReporter(ctx, w.Store, lease, &catalogv1.Status{
		Epoch: t.desired.GetEpoch(), Attempts: uint32(d.NumDelivered), Alone: before.alone, Lost: before.lost,
	}, w.Log)
	outcome, err := t.run(ctx)
	t.status.stop()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return "", err
	}
	w.Metrics.published(lease, time.Now())
	w.notePublished(ctx, lease, d)
	return outcome, nil
}

// notePublished writes the success into the repo's status and removes its dead
// letter. The root is the truth, so a failure here loses nothing.
func (w *Worker) notePublished(ctx context.Context, lease *catalog.Lease, d *queue.Delivery) {
	_ = w.writeStatus(ctx, d, lease, &catalogv1.Status{State: ingestv1.State_STATE_PUBLISHED})
	if err := w.Queue.Forget(ctx, d.Repo); err != nil {
		w.Log.InfoContext(ctx, "dead letter not removed", "repo", d.Repo, "error", err)
	}
}

// task is one job under its lease.
type task struct {
	*Worker
	delivery *queue.Delivery
	lease    *catalog.Lease
	desired  *catalogv1.Desired
	status   *reporter
	// alone: no other job runs in this indexer meanwhile.
	alone bool
	// leftOut are the wanted branches that name no commit of the repository.
	leftOut []docstore.Branch
	// member is the repo's part of a shard that it shares, nil if it has none.
	member *member
}

// run asks for the branches, fetches them, builds and publishes. Where nothing
// changed it publishes the old root with the new epoch.
func (t *task) run(ctx context.Context) (Outcome, error) {
	t.status.set(ingestv1.State_STATE_FETCHING, nil)
	branches, err := t.Fetcher.Branches(ctx, t.desired.GetUrl(), t.desired.GetBranches())
	if err != nil {
		return "", err
	}
	t.noteSeen(ctx, branches)
	if next := t.unchanged(branches); next != nil && t.isStored(ctx, next) {
		return Unchanged, t.publish(ctx, next)
	}
	dir, release := t.Mirrors.Use(t.desired.GetName(), t.desired.GetUrl(), t.lease.Life())
	defer release()
	defer func() { // its documents may be on the disk as long as the mirror
		if t.member != nil {
			t.packs.leave(t.member)
		}
	}()
	fetched, err := t.fetch(ctx, dir, branches)
	if err != nil {
		return "", err
	}
	t.leftOut = slices.DeleteFunc(slices.Clone(branches), func(b docstore.Branch) bool {
		return slices.ContainsFunc(fetched, func(f docstore.Branch) bool { return f.Name == b.Name })
	})
	if next := t.unchanged(fetched); next != nil && t.isStored(ctx, next) { // what changed was left out again
		return Unchanged, t.publish(ctx, next)
	}
	next, err := t.build(ctx, dir, fetched)
	if err != nil {
		return "", err
	}
	return Published, t.publish(ctx, next)
}

// noteSeen records the newest commit for the freshness that users see, unless the
// request reported it already. A failure does no harm.
func (t *task) noteSeen(ctx context.Context, branches []docstore.Branch) {
	seen := t.lease.Seen()
	if len(branches) == 0 || slices.ContainsFunc(branches, func(b docstore.Branch) bool {
		return b.Name == seen.GetBranch() && b.Commit == seen.GetCommit()
	}) {
		return
	}
	err := t.Store.PutSeen(ctx, t.desired.GetName(), &catalogv1.Seen{
		Branch: branches[0].Name, Commit: branches[0].Commit, At: timestamppb.Now(), By: ingestv1.SeenBy_SEEN_BY_REQUEST,
	})
	if err != nil {
		t.Log.InfoContext(ctx, "the newest commit was not noted", "repo", t.desired.GetName(), "error", err)
	}
}

// unchanged returns the old root with the new request's epoch if a build would
// yield the same documents, else nil.
func (t *task) unchanged(branches []docstore.Branch) *catalogv1.Root {
	old := t.lease.Root()
	if old == nil || t.wantsFullBuild() || !slices.Equal(t.inputs(), old.Record.GetInputs()) ||
		!slices.Equal(branches, gitsource.Branches(old.Record.GetBranches())) {
		return nil
	}
	next := proto.CloneOf(old.Record)
	next.Epoch, next.Id, next.LeftOut = t.desired.GetEpoch(), t.desired.GetFacts().GetId(), records(t.leftOut)
	return next
}

// wantsFullBuild reports whether a request after the published one was to build everything anew.
func (t *task) wantsFullBuild() bool {
	return t.desired.GetFullEpoch() > t.lease.Root().Record.GetEpoch()
}

// isStored reports whether the bucket has all shards of a root with their sizes. A
// shard counts as stored if the bucket does not answer.
func (t *task) isStored(ctx context.Context, root *catalogv1.Root) bool {
	return !slices.ContainsFunc(root.GetShards(), func(s *catalogv1.ShardRef) bool {
		info, err := t.Bucket.Stat(ctx, s.GetKey())
		return errors.Is(err, bucket.ErrNotFound) || err == nil && info.Size != int64(s.GetSizeBytes())
	})
}

// fetch fetches the branches into the mirror at dir.
func (t *task) fetch(ctx context.Context, dir string, branches []docstore.Branch) ([]docstore.Branch, error) {
	ctx, span := t.Tracer.Start(ctx, "fetch")
	defer span.End()
	return t.Fetcher.Fetch(ctx, dir, t.desired.GetUrl(), branches, func(p gitsource.Progress) {
		t.status.set(ingestv1.State_STATE_FETCHING, &ingestv1.Progress{Done: p.Done, Total: p.Total, Unit: "objects"})
	})
}

// Bounds of the pause between attempts to publish; it doubles.
const (
	minPublishPause = 100 * time.Millisecond
	maxPublishPause = 5 * time.Second
)

// publish makes next the repo's root. While etcd does not answer it tries again
// until ctx ends, at the latest when the lease is lost. An attempt whose answer was
// lost can be repeated, since the store recognises its own root.
func (t *task) publish(ctx context.Context, next *catalogv1.Root) error {
	ctx, span := t.Tracer.Start(ctx, "publish")
	defer span.End()
	for attempt := uint32(0); ; attempt++ {
		err := t.tryPublish(ctx, next)
		if err == nil || !catalog.IsTransient(err) {
			return err
		}
		if !wait.Sleep(ctx, wait.Double(minPublishPause, attempt, maxPublishPause)) {
			return fmt.Errorf("publish the root of %q: %w", t.desired.GetName(), context.Cause(ctx))
		}
	}
}

func (t *task) tryPublish(ctx context.Context, next *catalogv1.Root) (err error) {
	if t.member != nil && t.member.pack.claim != nil {
		_, err = t.Store.PublishPacked(ctx, t.lease, t.member.pack.claim, next)
		return err
	}
	_, err = t.Store.Publish(ctx, t.lease, t.lease.Root(), next)
	return err
}
