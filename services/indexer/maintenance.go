package indexer

import (
	"context"
	"sync"
	"time"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/gc"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/services/indexer/internal/compact"
	"github.com/trawl-search/trawl/services/indexer/internal/discover"
	"github.com/trawl-search/trawl/services/indexer/internal/reconcile"
)

const (
	// election is the name of the election of the maintenance leader.
	election = "maintenance"
	// leaderTTL is how long maintenance pauses after its leader died.
	leaderTTL = 15 * time.Second
)

// maintain does the work of the leader while this indexer leads, until ctx ends: it
// reconciles, collects garbage, plans compactions and polls the sources.
func (x *Indexer) maintain(ctx context.Context, store *catalog.Store, fetcher *gitsource.Fetcher) {
	log := x.tel.Logger()
	live := limits.NewLive(limits.NewStore(x.deps.Etcd, store.Prefix()), log)
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { live.Run(ctx) })
	reconciler := reconcile.Reconciler{
		Store: store, Queue: x.deps.Queue, Every: x.cfg.ReconcileEvery, RetryFailed: retryFailed, RetryUnreachable: retryUnreachable,
		Metrics: x.reconciled, Log: log,
	}
	collector := gc.Collector{Store: store, Bucket: x.deps.Bucket, Config: x.cfg.GC, Metrics: x.garbage, Log: log}
	collector.Bounds = func() gc.Bounds { return x.cfg.bounds(live) }
	discoverer := x.discoverer(store, fetcher, live)
	scheduler := compact.Scheduler{Config: x.cfg.Compact, Live: live, Store: store, Metrics: x.compacted, Log: log}
	store.Lead(ctx, election, leaderTTL, log, func(leading context.Context) {
		log.InfoContext(leading, "leading the maintenance")
		x.common.leader.Set(1)
		defer x.common.leader.Set(0)
		var running sync.WaitGroup
		running.Go(func() { reconciler.Run(leading) })
		running.Go(func() { collector.Run(leading, x.cfg.GCEvery) })
		running.Go(func() { discoverer.Run(leading) })
		running.Go(func() { scheduler.Run(leading) })
		running.Wait()
	})
}

// compactor makes the worker that carries out planned compactions.
func (x *Indexer) compactor(store *catalog.Store, tools tools) *compact.Worker {
	return &compact.Worker{
		Config: x.cfg.Compact, Store: store, Bucket: x.deps.Bucket, TempDir: tools.cache.TempDir(), LeaseTTL: x.cfg.LeaseTTL,
		Waiting: x.waiting, Jobs: &x.jobs, Version: x.tel.Version(), Metrics: x.compacted, Log: x.tel.Logger(),
	}
}

// waiting reports whether repos are in the queue that no indexer has taken.
func (x *Indexer) waiting(ctx context.Context) bool {
	depth, err := x.deps.Queue.Depth(ctx)
	return err == nil && depth.Jobs > depth.Delivered
}

// discoverer makes the part of maintenance that polls the sources.
func (x *Indexer) discoverer(store *catalog.Store, fetcher *gitsource.Fetcher, live *limits.Live) *discover.Discoverer {
	from := x.cfg.Source
	return &discover.Discoverer{
		Config: discover.Config{PerSecond: x.cfg.PollPerSecond, Live: live, Apart: x.cfg.PushPause},
		Store:  store, Queue: x.deps.Queue, Remote: fetcher, Policy: from.Policy,
		Bucket: x.deps.Bucket, File: x.cfg.Sources,
		Open: func() (discover.Host, error) {
			return codehost.NewClient(from.Policy, from.CAFile, codehost.Secrets{Folder: from.Credentials})
		},
		Metrics: x.discovered, Log: x.tel.Logger(),
	}
}
