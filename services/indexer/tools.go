package indexer

import (
	"context"
	"errors"
	"time"

	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/services/indexer/internal/mirrors"
)

// tools are what jobs need of the local disk.
type tools struct {
	cache   *mirrors.Cache
	fetcher *gitsource.Fetcher
}

const (
	minToolsWait = time.Second
	maxToolsWait = 30 * time.Second
)

// openTools tries until the cache folder can be used; ok is false when ctx ends
// before.
func (x *Indexer) openTools(ctx context.Context, cond *server.Condition) (t tools, ok bool) {
	for wait := minToolsWait; ; wait = min(2*wait, maxToolsWait) {
		t, err := x.tryTools()
		if err == nil {
			return t, true
		}
		cond.Unmet(err.Error())
		x.tel.Logger().WarnContext(ctx, "cannot use the cache folder, trying again", "error", err, "wait", wait)
		select {
		case <-ctx.Done():
			return tools{}, false
		case <-time.After(wait):
		}
	}
}

func (x *Indexer) tryTools() (tools, error) {
	cache, err := mirrors.Open(x.cfg.CacheDir, int64(x.cfg.CacheSize))
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
