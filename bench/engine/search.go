package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
)

// Engine searches shards like a searcher, without the network.
type Engine struct{ shards []*search.Shard }

// OpenEngine opens the shards. Close closes them.
func OpenEngine(paths []string) (*Engine, error) {
	e := &Engine{}
	for _, p := range paths {
		s, err := search.Open(p)
		if err != nil {
			_ = closeAll(e.shards) // err says more
			return nil, err
		}
		e.shards = append(e.shards, s)
	}
	return e, nil
}

// Close closes the shards.
func (e *Engine) Close() error { return closeAll(e.shards) }

// Files returns every file that the query matches, as repo and path. With thousands of shards it does not rank the best across
// shards.
func (e *Engine) Files(ctx context.Context, q corpus.Query) (map[string]bool, error) {
	tree, err := parse(q)
	if err != nil {
		return nil, err
	}
	return e.files(ctx, tree)
}

func (e *Engine) files(ctx context.Context, tree query.Q) (map[string]bool, error) {
	ready, err := search.Prepare(tree)
	if err != nil {
		return nil, err
	}
	files := map[string]bool{}
	for _, s := range e.shards {
		found, err := s.Search(ctx, ready, search.Options{MaxFiles: 1 << 30, MaxMatchesPerFile: 1})
		if err == nil {
			err = found.Incomplete
		}
		if err != nil {
			return nil, fmt.Errorf("searching %s: %w", s.Name(), err)
		}
		for _, f := range found.Files {
			files[f.Repo+"/"+string(f.Path)] = true
		}
	}
	return files, nil
}

// Paths returns every file, as Files does.
func (e *Engine) Paths(ctx context.Context) (map[string]bool, error) {
	return e.files(ctx, &query.Const{Value: true})
}

// Rank returns how long finding the best files takes for words in any case, in one shard after the other, without showing any.
func (e *Engine) Rank(ctx context.Context, words string, files int) (time.Duration, error) {
	tree, err := query.Parse(words+" case:no", query.ParseOptions{SyntaxVersion: query.MaxSyntaxVersion})
	if err != nil {
		return 0, fmt.Errorf("parsing %s: %w", words, err)
	}
	start := time.Now()
	ready, err := search.Prepare(tree)
	if err != nil {
		return 0, err
	}
	ranking := search.NewRanking(files, 0)
	for _, s := range e.shards {
		found, err := s.Find(ctx, ready, search.Options{Mode: search.TopK, MaxFiles: files, MaxMatchesPerFile: 1, Floor: ranking.Floor()})
		if err == nil {
			err = found.Incomplete
		}
		if err != nil {
			return 0, fmt.Errorf("searching %s: %w", s.Name(), err)
		}
		ranking.Add(found)
	}
	return time.Since(start), nil
}

// Time returns how long the query takes with the best 50 files shown, with all matches counted or only those 50 found. Like
// zoekt's clock, it starts with the parsed query, before expressions are compiled.
func (e *Engine) Time(ctx context.Context, q corpus.Query, exhaustive bool) (time.Duration, error) {
	opts := search.Options{Mode: search.TopK, MaxFiles: 50, MaxMatchesPerFile: 100}
	if exhaustive {
		opts.Mode = search.Exhaustive
	}
	tree, err := parse(q)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	_, err = e.search(ctx, tree, opts)
	return time.Since(start), err
}

func parse(q corpus.Query) (query.Q, error) {
	tree, err := query.Parse(q.Text(), query.ParseOptions{})
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", q.Text(), err)
	}
	return tree, nil
}

// search finds the best files of all shards, and then shows them.
func (e *Engine) search(ctx context.Context, tree query.Q, opts search.Options) ([]search.FileMatch, error) {
	ready, err := search.Prepare(tree)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	ranking := search.NewRanking(opts.MaxFiles, opts.MaxBytes)
	found, parts := make([]*search.Found, len(e.shards)), make([]int, len(e.shards))
	err = e.each(func(i int) error {
		opts := opts
		mu.Lock()
		opts.Floor = ranking.Floor()
		mu.Unlock()
		f, err := e.shards[i].Find(ctx, ready, opts)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		found[i], parts[i] = f, ranking.Add(f)
		return f.Incomplete
	})
	if err != nil {
		return nil, err
	}
	err = e.each(func(i int) error {
		mu.Lock()
		n := ranking.Count(parts[i])
		mu.Unlock()
		if n == 0 {
			return nil
		}
		shown, err := e.shards[i].Show(ctx, found[i], n)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		ranking.Shown(parts[i], shown)
		return shown.Incomplete
	})
	return ranking.Result().Files, err
}

// each distributes the shards over the processors.
func (e *Engine) each(do func(i int) error) error {
	errs := make([]error, len(e.shards))
	var turn atomic.Int64
	work := func() {
		for i := turn.Add(1) - 1; i < int64(len(e.shards)); i = turn.Add(1) - 1 {
			errs[i] = do(int(i))
		}
	}
	var others sync.WaitGroup
	for range min(len(e.shards), runtime.GOMAXPROCS(0)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return errors.Join(errs...)
}

// Skipped returns, for each file that only its name finds, the reason.
func (e *Engine) Skipped(ctx context.Context) (map[string]string, error) {
	all, err := search.Prepare(&query.Const{Value: true})
	if err != nil {
		return nil, err
	}
	skipped := map[string]string{}
	for _, s := range e.shards {
		found, err := s.List(ctx, all, search.ListOptions{MaxSkippedFiles: 1 << 30})
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

// Allocs returns the number of allocations of one search, and their bytes.
func (e *Engine) Allocs(ctx context.Context, q corpus.Query, exhaustive bool) (count, bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = e.Time(ctx, q, exhaustive)
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc, err
}
