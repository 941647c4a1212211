package job

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// reportEvery bounds how often a job's progress is written to etcd.
const reportEvery = time.Second

// reporter writes a job's progress in the background, so that a slow etcd does not
// delay the job. A progress that cannot be written is dropped.
type reporter struct {
	store  *catalog.Store
	lease  *catalog.Lease
	base   *catalogv1.Status // what all statuses of the job have
	log    *slog.Logger
	cancel context.CancelFunc
	done   sync.WaitGroup
	wake   chan struct{}

	mu     sync.Mutex
	latest *catalogv1.Status
}

func startReporter(ctx context.Context, store *catalog.Store, lease *catalog.Lease, base *catalogv1.Status, log *slog.Logger) *reporter {
	ctx, cancel := context.WithCancel(ctx)
	r := &reporter{
		store: store, lease: lease, base: base, log: log, cancel: cancel, wake: make(chan struct{}, 1),
	}
	r.done.Go(func() { r.run(ctx) })
	return r
}

// set replaces the progress to write next. It never waits.
func (r *reporter) set(state ingestv1.State, progress *ingestv1.Progress) {
	r.mu.Lock()
	r.latest = proto.CloneOf(r.base)
	r.latest.State, r.latest.Progress = state, progress
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// stop ends the reporter, which writes nothing afterwards.
func (r *reporter) stop() {
	r.cancel()
	r.done.Wait()
}

func (r *reporter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		r.write(ctx)
		if !wait.Sleep(ctx, reportEvery) {
			return
		}
	}
}

func (r *reporter) write(ctx context.Context) {
	r.mu.Lock()
	status := r.latest
	r.mu.Unlock()
	status.UpdatedAt = timestamppb.Now()
	if err := r.store.PutStatus(ctx, r.lease.Desired().GetName(), status, r.lease); err != nil && ctx.Err() == nil {
		r.log.DebugContext(ctx, "progress not written", "error", err)
	}
}
