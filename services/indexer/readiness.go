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
	"github.com/trawl-search/trawl/internal/server"
)

const (
	// probeEvery is the time between two looks at what the indexer needs,
	// brokenEvery while some of it is missing, and probeTimeout the longest time
	// for one.
	probeEvery   = 5 * time.Second
	brokenEvery  = time.Second
	probeTimeout = 5 * time.Second
	// probeBytes are written to the cache folder to see that there is room.
	probeBytes = 1 << 20
)

// probes keep the conditions of readiness current.
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

// run probes what is elsewhere until ctx ends.
func (p *probes) run(ctx context.Context) {
	every(ctx, func() bool {
		well := check(ctx, p.etcd, func(ctx context.Context) error {
			_, err := p.store.CurrentRevision(ctx)
			return err
		})
		well = check(ctx, p.queue, p.lookAtQueue) && well
		well = check(ctx, p.bucket, func(ctx context.Context) error { return bucket.Reachable(ctx, p.deps.Bucket) }) && well
		return check(ctx, p.git, func(ctx context.Context) error {
			_, err := gitsource.GitVersion(ctx)
			return err
		}) && well
	})
}

// lookAtQueue sees whether the queue is there, and how much is in it.
func (p *probes) lookAtQueue(ctx context.Context) error {
	depth, err := p.deps.Queue.Depth(ctx)
	if err == nil {
		p.metrics.saw(depth)
	}
	return err
}

// watchRoom probes the disk until ctx ends.
func watchRoom(ctx context.Context, cond *server.Condition, dir string) {
	every(ctx, func() bool {
		return check(ctx, cond, func(context.Context) error { return probeDisk(dir) })
	})
}

// every probes until ctx ends, more often while the probe says that not all is
// well.
func every(ctx context.Context, probe func() bool) {
	for ctx.Err() == nil {
		wait := brokenEvery
		if probe() {
			wait = probeEvery
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// check probes one thing, and says whether it is well.
func check(ctx context.Context, cond *server.Condition, probe func(context.Context) error) bool {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := probe(limited)
	switch {
	case ctx.Err() != nil: // shutting down says nothing about it
	case err != nil:
		cond.Unmet(err.Error())
	default:
		cond.Met()
	}
	return err == nil
}

// probeDisk sees whether a file can be written.
func probeDisk(dir string) error {
	file, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return fmt.Errorf("making a file: %w", err)
	}
	_, err = file.Write(make([]byte, probeBytes))
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}
