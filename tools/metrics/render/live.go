package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/trawl-search/trawl/tools/metrics"
)

// scrapeEvery is how often Trawl is scraped: often, for it does not live long.
const scrapeEvery = 5 * time.Second

// live runs a Trawl that works for a while, and stores what it tells.
func live(ctx context.Context, store *metrics.Store, root, dir string, during time.Duration) (from, to time.Time, err error) {
	trawl, err := metrics.Start(ctx, root, dir)
	if err != nil {
		return from, to, err
	}
	defer func() { err = errors.Join(err, trawl.Stop()) }()
	from = time.Now()
	ctx, cancel := context.WithDeadline(ctx, from.Add(during))
	defer cancel()
	var working sync.WaitGroup
	working.Go(func() { index(ctx, trawl, root, dir) })
	for range 3 {
		working.Go(func() { search(ctx, trawl) })
	}
	for ctx.Err() == nil {
		to = time.Now()
		body, err := metrics.Scrape(context.WithoutCancel(ctx), trawl.Metrics)
		if err == nil {
			err = store.Add(context.WithoutCancel(ctx), body, to, "trawl-0")
		}
		if err != nil {
			cancel()
			working.Wait()
			return from, to, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(scrapeEvery):
		}
	}
	working.Wait()
	return from, to, nil
}

// index makes repositories of folders of this one and indexes one after the
// other; some are deleted again, and one cannot be had. What fails is seen in the pictures.
func index(ctx context.Context, trawl *metrics.Trawl, root, dir string) {
	for n := 0; ctx.Err() == nil; n++ {
		repo := filepath.Join(dir, fmt.Sprint("repo", n))
		folders, _ := filepath.Glob(filepath.Join(root, "i*", "*"))
		if os.CopyFS(repo, os.DirFS(folders[n%len(folders)])) == nil && metrics.Repository(ctx, repo, nil) == nil {
			_ = trawl.Run(ctx, "index", "--name", name(n), repo)
		}
		switch {
		case n%4 == 3:
			_ = trawl.Run(ctx, "delete", name(n-1))
		case n%6 == 5:
			_ = trawl.Run(ctx, "index", "--no-wait", "--name", "demo/missing", filepath.Join(dir, "missing"))
		}
		pause(ctx)
	}
}

func name(n int) string { return fmt.Sprint("demo/repo", n) }

var queries = []string{"func", "context", "lang:go error", `\w+Error`, "package -f:_test", "f:md trawl", "no such words", "type:repo shard", "(broken", `r"[^a]{9}x`}

func search(ctx context.Context, trawl *metrics.Trawl) {
	for ctx.Err() == nil {
		_ = trawl.Run(ctx, "search", queries[rand.N(len(queries))])
		pause(ctx)
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(600 * time.Millisecond)):
	}
}
