package indexer

import (
	"context"
	"os"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/compact"
	"github.com/trawl-search/trawl/services/indexer/internal/mirrors"
)

// sweeper removes the copies of repos that are not desired any more from this disk,
// and tells when they are gone.
type sweeper struct {
	store *catalog.Store
	cache *mirrors.Cache
	// compactor may be reading shards with documents of a deleted repo.
	compactor *compact.Worker
}

// sweepMirrors sweeps until ctx ends: at once, and then as often as garbage is
// collected.
func (x *Indexer) sweepMirrors(ctx context.Context, s sweeper, cleared chan<- int64) {
	for ctx.Err() == nil {
		revision, removed, err := s.sweep(ctx)
		if err != nil && ctx.Err() == nil {
			x.tel.Logger().WarnContext(ctx, "copies of deleted repos were not looked for, trying again", "error", err)
		}
		if removed > 0 {
			x.tel.Logger().InfoContext(ctx, "copies of repos removed that are not desired any more", "copies", removed)
		}
		if revision > 0 {
			select {
			case cleared <- revision:
			case <-ctx.Done():
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(x.cfg.GCEvery):
		}
	}
}

// sweep removes what is not desired; what comes while it reads stays. Revision is that
// as of which nothing else is there, 0 if that is not known: a job that has not
// noticed yet that its repo is deleted has its copy.
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

// keepDisk tells those who wait for a deletion what is on this disk.
func (x *Indexer) keepDisk(ctx context.Context, cleared <-chan int64) {
	host, _ := os.Hostname() // for people
	// A job that was under way when the repo was deleted may outlive one sweep.
	disk := &catalogv1.Disk{Name: host, Role: membership.IndexerDisk, Within: durationpb.New(2 * x.cfg.GCEvery)}
	membership.KeepDisk(ctx, x.deps.Etcd, catalog.DefaultPrefix, disk, leaderTTL, cleared, x.tel.Logger())
}
