package engine

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/trawl-search/trawl/bench/querylog"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/shard"
)

// Engine searches shards as a searcher does, without the network.
type Engine struct{ shards []*shard.Shard }

// OpenEngine opens the shards, which Close closes.
func OpenEngine(paths []string) (*Engine, error) {
	e := &Engine{}
	for _, p := range paths {
		s, err := shard.Open(p)
		if err != nil {
			_ = closeAll(e.shards) // opening failed, which says more
			return nil, err
		}
		e.shards = append(e.shards, s)
	}
	return e, nil
}

// Close closes the shards.
func (e *Engine) Close() error { return closeAll(e.shards) }

// Files answers every file that the query matches, as repo and path.
func (e *Engine) Files(ctx context.Context, q querylog.Query) (map[string]bool, error) {
	found, err := e.search(ctx, q, shard.Options{MaxFiles: 1 << 30, MaxMatchesPerFile: 1})
	if err != nil {
		return nil, err
	}
	files := make(map[string]bool, len(found))
	for _, f := range found {
		files[f.Repo+"/"+string(f.Path)] = true
	}
	return files, nil
}

// Time answers how long the query takes with the best 50 files shown: all
// matches counted, or only the 50 found.
func (e *Engine) Time(ctx context.Context, q querylog.Query, exhaustive bool) (time.Duration, error) {
	opts := shard.Options{Mode: shard.TopK, MaxFiles: 50, MaxMatchesPerFile: 100}
	if exhaustive {
		opts.Mode = shard.Exhaustive
	}
	start := time.Now()
	_, err := e.search(ctx, q, opts)
	return time.Since(start), err
}

// search spreads the shards over the processors and merges what they find.
func (e *Engine) search(ctx context.Context, q querylog.Query, opts shard.Options) ([]shard.FileMatch, error) {
	tree, err := query.Parse(q.Text(), query.ParseOptions{})
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", q.Text(), err)
	}
	lists, errs := make([][]shard.FileMatch, len(e.shards)), make([]error, len(e.shards))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, s := range e.shards {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			found, err := s.Search(ctx, tree, opts)
			if err == nil {
				lists[i], err = found.Files, found.Incomplete
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return shard.Merge(opts.MaxFiles, lists...), nil
}

// Skipped says for each file that is found by name only why that is.
func (e *Engine) Skipped(ctx context.Context) (map[string]string, error) {
	skipped := map[string]string{}
	for _, s := range e.shards {
		found, err := s.List(ctx, &query.Const{Value: true}, shard.ListOptions{MaxSkippedFiles: 1 << 30})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", s.Name(), err)
		}
		for _, r := range found.Repos {
			for _, f := range r.SkippedFiles {
				skipped[r.Repo.Name+"/"+string(f.Path)] = f.Reason.String()
			}
		}
	}
	return skipped, nil
}

// Allocs answers the allocations, and bytes of them, of one search.
func (e *Engine) Allocs(ctx context.Context, q querylog.Query, exhaustive bool) (count, bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = e.Time(ctx, q, exhaustive)
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc, err
}
