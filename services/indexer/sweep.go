package indexer

import (
	"context"
	"os"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/compact"
	"github.com/trawl-search/trawl/services/indexer/internal/job"
)

// sweeper removes the mirrors of repos that are no longer desired from this disk.
type sweeper struct {
	store *catalog.Store
	cache *job.Mirrors
	// compactor may have shards with documents of a deleted repo on disk.
	compactor *compact.Worker
}

// sweepMirrors sweeps until ctx ends, at once and then as often as garbage is collected.
// Afterwards it sends the state of this disk that is to be published.
func (x *Indexer) sweepMirrors(ctx context.Context, s sweeper, disks chan<- *catalogv1.Disk) {
	for ctx.Err() == nil {
		revision, removed, err := s.sweep(ctx)
		if err != nil && ctx.Err() == nil {
			x.tel.Logger().WarnContext(ctx, "removing the mirrors of deleted repos failed, trying again", "error", err)
		}
		if removed > 0 {
			x.tel.Logger().InfoContext(ctx, "removed the mirrors of deleted repos", "copies", removed)
		}
		if revision > 0 {
			select {
			case disks <- x.disk(revision):
			case <-ctx.Done():
			}
		}
		wait.Sleep(ctx, x.cfg.GCEvery)
	}
}

// sweep removes the mirrors of repos that are not desired; mirrors used meanwhile stay.
// No data of repos deleted by the returned revision is left on this disk. The revision
// is 0 if that is unknown, as while a job still uses the mirror of a deleted repo.
func (s sweeper) sweep(ctx context.Context) (revision int64, removed int, err error) {
	if revision, err = s.store.CurrentRevision(ctx); err != nil {
		return 0, 0, err
	}
	revision = s.compactor.Since(revision)
	sweep := s.cache.Sweep()
	for entry, err := range s.store.ListDesired(ctx) {
		if err != nil {
			return 0, 0, err
		}
		sweep.Keep(entry.Record.GetName(), entry.Record.GetUrl(), entry.Life)
	}
	removed, busy, err := sweep.Remove(revision)
	if busy > 0 || err != nil {
		revision = 0
	}
	return revision, removed, err
}

// disk is the published state of this disk, for callers that wait for a deletion: the
// revision through which it is purged of deleted repos, or 0 while that is unknown.
func (x *Indexer) disk(purgedThrough int64) *catalogv1.Disk {
	host, _ := os.Hostname() // for people
	// A job that was running when the repo was deleted may outlive one sweep.
	return &catalogv1.Disk{Name: host, Role: membership.IndexerDisk, Within: durationpb.New(2 * x.cfg.GCEvery), Revision: purgedThrough}
}
