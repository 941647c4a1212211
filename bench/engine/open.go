package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/shard"
)

// Opened is what holding shards open costs.
type Opened struct {
	Shards, Repos int
	Wall          time.Duration
	// Heap in bytes after opening, and HeapUsed after one search of each shard.
	Heap, HeapUsed int64
}

// Open opens the shards, over again until there are at least count, and searches each once.
func Open(ctx context.Context, paths []string, count int) (o Opened, err error) {
	if len(paths) == 0 {
		return o, errors.New("there are no shards to open")
	}
	q, err := query.Parse("content:return", query.ParseOptions{})
	if err != nil {
		return o, fmt.Errorf("parsing the query: %w", err)
	}
	count = max(count, len(paths))
	shards := make([]*shard.Shard, 0, count)
	defer func() { err = errors.Join(err, closeAll(shards)) }()
	before, start := heap(), time.Now()
	for i := range count {
		s, err := shard.Open(paths[i%len(paths)])
		if err != nil {
			return o, err
		}
		shards = append(shards, s)
	}
	o.Wall, o.Heap, o.Shards = time.Since(start), heap()-before, count
	for _, s := range shards {
		listed, err := s.List(ctx, &query.Const{Value: true}, shard.ListOptions{})
		if err != nil {
			return o, fmt.Errorf("listing %s: %w", s.Name(), err)
		}
		o.Repos += len(listed.Repos)
		if _, err := s.Search(ctx, q, shard.Options{Mode: shard.TopK, MaxFiles: 50}); err != nil {
			return o, fmt.Errorf("searching %s: %w", s.Name(), err)
		}
	}
	o.HeapUsed = heap() - before
	runtime.KeepAlive(shards)
	return o, nil
}

func closeAll(shards []*shard.Shard) error {
	var errs []error
	for _, s := range shards {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// heap is what is live. Twice, since what is finalised or pooled goes with
// the second collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// SectionSize is the length of all sections of one kind.
type SectionSize struct {
	Tag   string
	Bytes int64
}

// Sections adds up the sections of the shards by their kind, the largest
// first. What is left to the size of the files is header, checksums and table of contents.
func Sections(paths []string) ([]SectionSize, error) {
	sizes := map[string]int64{}
	for _, p := range paths {
		f, err := format.OpenFile(p)
		if err != nil {
			return nil, fmt.Errorf("opening a shard: %w", err)
		}
		for _, s := range f.Sections() {
			sizes[s.Tag.String()] += s.Length
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("closing a shard: %w", err)
		}
	}
	var list []SectionSize
	for tag, n := range sizes {
		list = append(list, SectionSize{tag, n})
	}
	slices.SortFunc(list, func(a, b SectionSize) int { return int(b.Bytes - a.Bytes) })
	return list, nil
}
