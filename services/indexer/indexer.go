// Package indexer is the role that turns repos into shards. It takes jobs from the
// queue, fetches with git, builds shards, uploads them to the bucket and publishes
// them in etcd. Any number of indexers can run; a lease ensures that one at a time
// works on a repo. The indexers elect a leader, which also enqueues lost requests
// again, collects the garbage of the bucket, plans compactions, and keeps the desired
// repos in step with the sources.
package indexer

import (
	"context"
	"fmt"
	"net"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gc"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/sandbox"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/compact"
	"github.com/trawl-search/trawl/services/indexer/internal/discover"
	"github.com/trawl-search/trawl/services/indexer/internal/job"
	"github.com/trawl-search/trawl/services/indexer/internal/reconcile"
)

// component names the role in logs, metrics and traces.
const component = "indexer"

// Deps are the clients of an indexer. The caller closes them after Run.
type Deps struct {
	Etcd *clientv3.Client
	// Prefix stands before every key in etcd; empty: catalog.DefaultPrefix.
	Prefix    string
	Queue     *queue.Queue
	Bucket    bucket.Bucket
	Telemetry *telemetry.Telemetry
}

// Indexer is one indexer.
type Indexer struct {
	cfg     Config
	deps    Deps
	tel     *telemetry.Telemetry
	server  *server.Server
	metrics *job.Metrics
	garbage *gc.Metrics

	common     *metrics
	reconciled *reconcile.Metrics
	discovered *discover.Metrics
	compacted  *compact.Metrics

	jobs compact.Jobs
}

// New makes an indexer. It opens no connection.
func New(cfg Config, deps Deps) (*Indexer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure indexer: %w", err)
	}
	x := &Indexer{cfg: cfg, deps: deps, tel: deps.Telemetry.For(component)}
	var err error
	x.metrics = job.NewMetrics(x.tel.Metrics())
	x.garbage = gc.NewMetrics(x.tel.Metrics())
	x.reconciled = reconcile.NewMetrics(x.tel.Metrics())
	x.discovered = discover.NewMetrics(x.tel.Metrics())
	x.compacted = compact.NewMetrics(x.tel.Metrics())
	x.common = newMetrics(x.tel.Metrics())
	if x.server, err = server.New(cfg.Config, x.tel); err != nil {
		return nil, err
	}
	return x, nil
}

// Listen binds the addresses, so that they are known before Run.
func (x *Indexer) Listen(ctx context.Context) error { return x.server.Listen(ctx) }

// GRPCAddr is the address that gRPC is bound to, or nil before Listen.
func (x *Indexer) GRPCAddr() net.Addr { return x.server.GRPCAddr() }

// HTTPAddr is the address that HTTP is bound to, or nil before Listen.
func (x *Indexer) HTTPAddr() net.Addr { return x.server.HTTPAddr() }

// Ready reports whether the indexer can do its work.
func (x *Indexer) Ready() bool { return x.server.Readiness().Ready() }

// Run works until ctx ends. It then stops its jobs and returns them to the queue, so
// that another indexer takes them at once. It does not fail while etcd, the queue, the
// bucket or the disk is unavailable: readiness reports that, and work continues when
// they are back. An indexer runs once.
func (x *Indexer) Run(ctx context.Context) error {
	if err := sandbox.Support(); err != nil {
		x.tel.Logger().WarnContext(ctx, "git is not confined entirely on this machine; its limits hold", "reason", err)
	}
	store := catalog.New(x.deps.Etcd, x.deps.Prefix)
	probes := x.newProbes(store)
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return x.server.Run(running) })
	group.Go(func() error { probes.run(running); return nil })
	group.Go(func() error {
		tools, ok := x.openTools(running, probes.cache)
		if !ok {
			return nil // the end of the context
		}
		if x.claimBucket(running, store) {
			x.work(running, store, tools, probes.cache)
		}
		return tools.close()
	})
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// work does jobs until ctx ends.
func (x *Indexer) work(ctx context.Context, store *catalog.Store, tools tools, room *server.Condition) {
	worker := x.worker(store, tools)
	handle := func(ctx context.Context, d *queue.Delivery) error {
		defer x.jobs.Begin()() // the compactor gives way meanwhile
		return worker.Handle(ctx, d)
	}
	var running sync.WaitGroup
	running.Go(func() { watchRoom(ctx, room, tools.cache.TempDir()) })
	compactor, disks := x.compactor(store, tools), make(chan *catalogv1.Disk)
	members := membership.NewMembers(ctx, x.deps.Etcd, store.Prefix(), x.tel.Logger())
	defer members.Close()
	running.Go(func() {
		membership.KeepDisk(ctx, x.deps.Etcd, store.Prefix(), x.disk(0), leaderTTL, disks, x.tel.Logger())
	})
	running.Go(func() { x.sweepMirrors(ctx, sweeper{store, tools.cache, compactor}, disks) })
	running.Go(func() { x.maintain(ctx, store, tools.fetcher) })
	running.Go(func() {
		whileReadable(ctx, members, x.server.Readiness().Condition("searchers"), func(ctx context.Context) {
			var writing sync.WaitGroup
			writing.Go(func() { compactor.Run(ctx) })
			if x.deps.Queue.Ensure(ctx) == nil {
				_ = x.deps.Queue.Consume(ctx, x.cfg.Workers, handle) // workers are 1 or more
			}
			writing.Wait()
		})
	})
	running.Wait()
}

func (x *Indexer) worker(store *catalog.Store, tools tools) *job.Worker {
	return &job.Worker{
		Config: job.Config{
			Timeout: x.cfg.JobTimeout, LeaseTTL: x.cfg.LeaseTTL, Attempts: MaxAttempts,
			Limits: x.cfg.limits(), Build: x.cfg.build(), Version: x.tel.Version(),
		},
		Store: store, Queue: x.deps.Queue, Bucket: x.deps.Bucket, Fetcher: tools.fetcher, Mirrors: tools.cache, Waiting: x.waiting,
		Log: x.tel.Logger(), Tracer: x.tel.Tracer("github.com/trawl-search/trawl/services/indexer"), Metrics: x.metrics,
	}
}
