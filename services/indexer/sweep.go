package indexer

import (
	"context"
	"time"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/services/indexer/internal/mirrors"
)

// sweepEvery is the time between two removals of the copies of repos that are not
// desired any more: the bound within which they go, while the indexer runs.
const sweepEvery = 30 * time.Minute

// sweepMirrors removes copies of repos that were deleted, until ctx ends: at once,
// and then every so often.
func (x *Indexer) sweepMirrors(ctx context.Context, store *catalog.Store, cache *mirrors.Cache) {
	for ctx.Err() == nil {
		removed, err := sweep(ctx, store, cache)
		if err != nil && ctx.Err() == nil {
			x.tel.Logger().WarnContext(ctx, "copies of deleted repos were not looked for, trying again", "error", err)
		}
		if removed > 0 {
			x.tel.Logger().InfoContext(ctx, "copies of repos removed that are not desired any more", "copies", removed)
		}
		select {
		case <-ctx.Done():
		case <-time.After(sweepEvery):
		}
	}
}

// sweep removes what is not desired. What comes while it reads stays.
func sweep(ctx context.Context, store *catalog.Store, cache *mirrors.Cache) (removed int, err error) {
	s := cache.Sweep()
	for entry, err := range store.ListDesired(ctx) {
		if err != nil {
			return 0, err
		}
		s.Keep(entry.Record.GetName(), entry.Record.GetUrl())
	}
	return s.Remove()
}
