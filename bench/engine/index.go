// Package engine measures Trawl's own engine in process: building shards,
// opening them, and searching them.
package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/gitsource"
)

// Indexed has the results and the cost of indexing a corpus. Processor time and
// peak memory belong to the process, and its parent reads them.
type Indexed struct {
	Shards             []string
	Documents, Skipped uint64
	ContentBytes       uint64
	ReadBytes          uint64
	IndexBytes         int64
	Allocs, AllocBytes uint64
	// Reused counts the shards whose builder reused the memory of an earlier
	// one.
	Reused uint64
	Wall   time.Duration
}

// Index builds the shards of a corpus in the folder out: with many repos per
// shard as long as there is room, or with perRepo at least one shard per repo.
func Index(ctx context.Context, repos []corpus.Repo, out string, perRepo bool) (Indexed, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, reused := build.Workspaces()
	start := time.Now()
	x := indexer{out: out}
	for _, r := range repos {
		if err := x.repo(ctx, r); err != nil {
			return Indexed{}, errors.Join(fmt.Errorf("indexing %s: %w", r.Name, err), x.finish())
		}
		if perRepo {
			if err := x.finish(); err != nil {
				return Indexed{}, err
			}
		}
	}
	if err := x.finish(); err != nil {
		return Indexed{}, err
	}
	x.done.Wall = time.Since(start)
	runtime.ReadMemStats(&after)
	_, reusedNow := build.Workspaces()
	x.done.Reused = reusedNow - reused
	x.done.Allocs, x.done.AllocBytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return x.done, nil
}

// indexer writes one shard after the other.
type indexer struct {
	out     string
	file    *os.File
	buffer  *bufio.Writer
	current *build.Builder
	done    Indexed
}

func (x *indexer) repo(ctx context.Context, r corpus.Repo) (err error) {
	src, err := gitsource.OpenFolder(r.Dir, gitsource.Limits{})
	if err != nil {
		return fmt.Errorf("opening the folder: %w", err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	added := false
	for doc, err := range src.Documents(ctx) {
		if err != nil {
			return err
		}
		if x.current != nil && x.current.Full() {
			if err := x.finish(); err != nil {
				return err
			}
			added = false
		}
		if !added {
			if err := x.begin(docstore.Repo{Name: r.Name, Branches: src.Branches()}); err != nil {
				return err
			}
			added = true
		}
		x.done.ReadBytes += uint64(len(doc.Content))
		if err := x.current.Add(*doc); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a repo, to which the next documents are added.
func (x *indexer) begin(repo docstore.Repo) error {
	if x.current != nil {
		return x.current.AddRepo(repo)
	}
	name := filepath.Join(x.out, fmt.Sprintf("%06d.trawl", len(x.done.Shards)))
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("making a shard: %w", err)
	}
	x.file, x.buffer = file, bufio.NewWriterSize(file, 1<<20)
	x.done.Shards = append(x.done.Shards, name)
	if x.current, err = build.NewBuilder(x.buffer, build.Options{}); err != nil {
		return err
	}
	return x.current.AddRepo(repo)
}

// finish completes the current shard, if there is one.
func (x *indexer) finish() error {
	if x.current == nil {
		return nil
	}
	result, err := x.current.Close()
	x.current = nil
	if err = errors.Join(err, x.buffer.Flush(), x.file.Close()); err != nil {
		return fmt.Errorf("writing a shard: %w", err)
	}
	x.done.Documents += result.Documents
	x.done.Skipped += result.Skipped
	x.done.ContentBytes += result.ContentBytes
	x.done.IndexBytes += result.Size
	return nil
}
