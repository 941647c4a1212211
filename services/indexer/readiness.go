package indexer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/owner"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/wait"
)

const (
	// probeEvery is the time between two probes, brokenEvery that after a failed one,
	// and probeTimeout bounds each.
	probeEvery   = 5 * time.Second
	brokenEvery  = time.Second
	probeTimeout = 5 * time.Second
	// probeBytes is the size of the file that a probe writes to the cache folder.
	probeBytes = 1 << 20
)

// probes update the conditions of readiness.
type probes struct {
	etcd, queue, bucket, cache, git *server.Condition

	store   *catalog.Store
	deps    Deps
	metrics *metrics
}

func (x *Indexer) newProbes(store *catalog.Store) *probes {
	r := x.server.Readiness()
	return &probes{
		etcd: r.Condition("etcd"), queue: r.Condition("queue"), bucket: r.Condition("bucket"),
		cache: r.Condition("cache"), git: r.Condition("git"), store: store, deps: x.deps,
		metrics: x.common,
	}
}

// run probes etcd, the queue, the bucket and git until ctx ends.
func (p *probes) run(ctx context.Context) {
	every(ctx, func() bool {
		well := check(ctx, p.etcd, func(ctx context.Context) error {
			_, err := p.store.CurrentRevision(ctx)
			return err
		})
		well = check(ctx, p.queue, p.probeQueue) && well
		well = check(ctx, p.bucket, func(ctx context.Context) error {
			return errors.Join(bucket.Reachable(ctx, p.deps.Bucket), owner.Check(ctx, p.deps.Bucket, p.store))
		}) && well
		return check(ctx, p.git, func(ctx context.Context) error {
			_, err := gitsource.GitVersion(ctx)
			return err
		}) && well
	})
}

// probeQueue checks that the queue answers, and records its depth.
func (p *probes) probeQueue(ctx context.Context) error {
	depth, err := p.deps.Queue.Depth(ctx)
	if err == nil {
		p.metrics.setDepth(depth)
	}
	return err
}

// watchRoom probes the disk until ctx ends.
func watchRoom(ctx context.Context, cond *server.Condition, dir string) {
	every(ctx, func() bool {
		return check(ctx, cond, func(context.Context) error { return probeDisk(dir) })
	})
}

// every probes until ctx ends, more often while the probe fails.
func every(ctx context.Context, probe func() bool) {
	for ctx.Err() == nil {
		pause := brokenEvery
		if probe() {
			pause = probeEvery
		}
		wait.Sleep(ctx, pause)
	}
}

// check runs a probe, sets its condition, and reports whether the probe succeeded.
func check(ctx context.Context, cond *server.Condition, probe func(context.Context) error) bool {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := probe(limited)
	switch {
	case ctx.Err() != nil: // a shutdown says nothing about the probed thing
	case err != nil:
		cond.Unmet(err.Error())
	default:
		cond.Met()
	}
	return err == nil
}

// probeDisk checks that a file can be written.
func probeDisk(dir string) error {
	file, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return fmt.Errorf("write a probe file: %w", err)
	}
	_, err = file.Write(make([]byte, probeBytes))
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}
