package indexer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/owner"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/wait"
	"github.com/trawl-search/trawl/services/indexer/internal/job"
)

// tools are the parts of a job that use the local disk.
type tools struct {
	cache   *job.Mirrors
	fetcher *gitsource.Fetcher
}

// Bounds of the wait between two attempts to open the cache folder, or to claim the bucket.
const (
	minToolsWait = time.Second
	maxToolsWait = 30 * time.Second
	// maxClaimWait is short, since somebody restores etcd meanwhile.
	maxClaimWait = 5 * time.Second
)

// openTools tries until the cache folder can be used; ok is false if ctx ends first.
func (x *Indexer) openTools(ctx context.Context, cond *server.Condition) (t tools, ok bool) {
	ok = x.persist(ctx, "the cache folder", maxToolsWait, func() (err error) {
		if t, err = x.tryTools(); err != nil {
			cond.Unmet(err.Error())
		}
		return err
	})
	return t, ok
}

// persist tries to get what the indexer needs until it works, with pauses of at most most; false if ctx ends first.
func (x *Indexer) persist(ctx context.Context, what string, most time.Duration, try func() error) bool {
	for attempt := uint32(0); ; attempt++ {
		err := try()
		if err == nil {
			return true
		}
		pause := wait.Double(minToolsWait, attempt, most)
		x.tel.Logger().WarnContext(ctx, "the indexer cannot use what it needs, trying again", "needed", what, "error", err, "wait", pause)
		if !wait.Sleep(ctx, pause) {
			return false
		}
	}
}

func (x *Indexer) tryTools() (tools, error) {
	// Git runs in another folder.
	folder, err := filepath.Abs(x.cfg.CacheDir)
	if err != nil {
		return tools{}, fmt.Errorf("find the folder of mirrors: %w", err)
	}
	cache, err := job.OpenMirrors(folder, int64(x.cfg.CacheSize))
	if err != nil {
		return tools{}, err
	}
	fetcher, err := gitsource.NewFetcher(cache.TempDir(), x.cfg.Source)
	if err != nil {
		return tools{}, errors.Join(err, cache.Close())
	}
	return tools{cache, fetcher}, nil
}

func (t tools) close() error {
	return errors.Join(t.fetcher.Close(), t.cache.Close())
}

// claimBucket tries until the bucket belongs to this catalog, so that no
// other one collects what is written here as garbage; false if ctx ends first. The
// condition of the bucket reports why it takes long.
func (x *Indexer) claimBucket(ctx context.Context, store *catalog.Store) bool {
	return x.persist(ctx, "the bucket", maxClaimWait, func() error {
		return owner.Claim(ctx, x.deps.Bucket, store)
	})
}
