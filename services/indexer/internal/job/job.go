// Package job indexes one repo: it takes the repo's lease, fetches its branches,
// builds and uploads shards and publishes them as the repo's next generation.
//
// A job may be stopped at any point and done again by anyone: what it has put
// into the bucket is its own and becomes garbage, the mirror repairs itself, and the
// one transaction that publishes holds only for the holder of the lease and
// only on the root that the job began from.
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
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/mirrors"
)

// Config is what jobs are bound by.
type Config struct {
	// Timeout is the longest time of one job.
	Timeout time.Duration
	// LeaseTTL is how long a repo stays leased by a process that died.
	LeaseTTL time.Duration
	// Attempts after which a failure that may pass is final.
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
	Mirrors *mirrors.Cache
	Log     *slog.Logger
	Tracer  trace.Tracer
	Metrics *Metrics
}

// Handle does the job of a delivery. It is a queue.Handler.
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
	root, err := w.Store.GetRoot(ctx, d.Repo)
	if err == nil && root.Record.GetEpoch() >= d.Epoch {
		return Superseded, nil
	}
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return w.judge(ctx, d, nil, err)
	}
	if left := w.early(ctx, d.Repo); left > 0 {
		return Postponed, queue.Later(errEarly, min(left, maxEarly))
	}
	lease, err := w.Store.AcquireLease(ctx, d.Repo, w.LeaseTTL)
	if err != nil {
		return w.judge(ctx, d, nil, err)
	}
	defer func() {
		// An error costs the next job the lease's ttl. The job's own context may
		// be over.
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := lease.Release(release); err != nil {
			w.Log.WarnContext(ctx, "lease not released", "repo", d.Repo, "error", err)
		}
	}()
	outcome, err := w.leased(ctx, d, lease)
	if err != nil {
		return w.judge(ctx, d, lease, err)
	}
	return outcome, nil
}

// errEarly is why a job waits for its turn.
var errEarly = errors.New("the repo was asked for shortly before: its pushes are indexed together")

// maxEarly bounds the wait for a turn, should the clock of who gave it be wrong.
const maxEarly = time.Minute

// early is how long it is to the turn of a repo's newest request. What is wrong with
// the record is found by who takes the lease.
func (w *Worker) early(ctx context.Context, repo string) time.Duration {
	desired, err := w.Store.GetDesired(ctx, repo)
	if err != nil || desired.Record.GetNotBefore() == nil {
		return 0
	}
	return time.Until(desired.Record.GetNotBefore().AsTime())
}

// errTimeout is the cause of a job that reached its limit of time.
var errTimeout = errors.New("the job took longer than its limit of time")

// leased does the job as long as the lease is held.
func (w *Worker) leased(ctx context.Context, d *queue.Delivery, lease *catalog.Lease) (Outcome, error) {
	root := lease.Root()
	if root != nil && root.Record.GetEpoch() >= lease.Desired().GetEpoch() {
		return Superseded, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, w.Timeout, errTimeout)
	defer stop()
	go func() {
		select {
		case <-lease.Lost():
			cancel(catalog.ErrLeaseLost)
		case <-ctx.Done():
		}
	}()
	t := &task{Worker: w, lease: lease, desired: lease.Desired()}
	t.status = startReporter(ctx, w.Store, lease, t.desired.GetEpoch(), uint32(d.NumDelivered), w.Log)
	outcome, err := t.run(ctx)
	t.status.stop()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return "", err
	}
	w.Metrics.fresh(lease, time.Now())
	w.published(ctx, lease, t.desired.GetEpoch(), d)
	return outcome, nil
}

// published notes the success where people look. The root says it already, so
// nothing is lost when this fails.
func (w *Worker) published(ctx context.Context, lease *catalog.Lease, epoch uint64, d *queue.Delivery) {
	status := &catalogv1.Status{
		State: ingestv1.State_STATE_PUBLISHED, Epoch: epoch, Attempts: uint32(d.NumDelivered), UpdatedAt: timestamppb.Now(),
	}
	if err := w.Store.PutStatus(ctx, d.Repo, status, lease); err != nil {
		w.Log.InfoContext(ctx, "status not written", "repo", d.Repo, "error", err)
	}
	if err := w.Queue.Forget(ctx, d.Repo); err != nil {
		w.Log.InfoContext(ctx, "dead letter not removed", "repo", d.Repo, "error", err)
	}
}

// task is one job under its lease.
type task struct {
	*Worker
	lease   *catalog.Lease
	desired *catalogv1.Desired
	status  *reporter
}

func (t *task) run(ctx context.Context) (Outcome, error) {
	t.status.set(ingestv1.State_STATE_FETCHING, nil)
	branches, err := t.Fetcher.Branches(ctx, t.desired.GetUrl(), t.desired.GetBranches())
	if err != nil {
		return "", err
	}
	t.saw(ctx, branches)
	if next := t.unchanged(branches); next != nil && t.whole(ctx, next) {
		return Unchanged, t.publish(ctx, next)
	}
	dir, release := t.Mirrors.Use(t.desired.GetName(), t.desired.GetUrl(), t.lease.Life())
	defer release()
	if branches, err = t.fetch(ctx, dir, branches); err != nil {
		return "", err
	}
	next, err := t.build(ctx, dir, branches)
	if err != nil {
		return "", err
	}
	return Published, t.publish(ctx, next)
}

// saw notes where the branches are, unless whoever asked for the job has said so. It
// is lost without harm.
func (t *task) saw(ctx context.Context, branches []docstore.Branch) {
	told := t.lease.Seen()
	if len(branches) == 0 || slices.ContainsFunc(branches, func(b docstore.Branch) bool {
		return b.Name == told.GetBranch() && b.Commit == told.GetCommit()
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

// unchanged returns the root to publish when a build would give the same
// documents: the old one, with the new request's epoch.
func (t *task) unchanged(branches []docstore.Branch) *catalogv1.Root {
	old := t.lease.Root()
	if old == nil || !slices.Equal(t.inputs(), old.Record.GetInputs()) ||
		!slices.EqualFunc(branches, old.Record.GetBranches(), sameBranch) {
		return nil
	}
	next := proto.CloneOf(old.Record)
	next.Epoch = t.desired.GetEpoch()
	return next
}

// whole says whether the bucket has the shards of a root, as far as can be seen
// without reading them. Where the bucket does not answer they are taken to be there.
func (t *task) whole(ctx context.Context, root *catalogv1.Root) bool {
	return !slices.ContainsFunc(root.GetShards(), func(s *catalogv1.ShardRef) bool {
		info, err := t.Bucket.Stat(ctx, s.GetKey())
		return errors.Is(err, bucket.ErrNotFound) || err == nil && info.Size != int64(s.GetSizeBytes())
	})
}

func sameBranch(a docstore.Branch, b *catalogv1.Branch) bool {
	return a.Name == b.GetName() && a.Commit == b.GetCommit()
}

func (t *task) fetch(ctx context.Context, dir string, branches []docstore.Branch) ([]docstore.Branch, error) {
	ctx, span := t.Tracer.Start(ctx, "fetch")
	defer span.End()
	return t.Fetcher.Fetch(ctx, dir, t.desired.GetUrl(), branches, func(p gitsource.Progress) {
		t.status.set(ingestv1.State_STATE_FETCHING, &ingestv1.Progress{Done: p.Done, Total: p.Total, Unit: "objects"})
	})
}

// The pauses between tries to publish.
const (
	minPublishPause = 100 * time.Millisecond
	maxPublishPause = 5 * time.Second
)

// publish makes next the repo's root. Everything is built, so while etcd is away
// it waits, until ctx ends: that is when the lease is lost, at the latest. A try
// whose answer was lost is repeated: the store knows its own root again.
func (t *task) publish(ctx context.Context, next *catalogv1.Root) error {
	ctx, span := t.Tracer.Start(ctx, "publish")
	defer span.End()
	for pause := minPublishPause; ; pause = min(2*pause, maxPublishPause) {
		_, err := t.Store.Publish(ctx, t.lease, t.lease.Root(), next)
		if err == nil || !catalog.IsTransient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("publishing: %w", context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}
