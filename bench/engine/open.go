package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
)

// Opened is the cost of open shards.
type Opened struct {
	Shards, Repos int
	Wall          time.Duration
	// Heap is the heap in bytes after opening, and HeapUsed that after one search of each shard,
	// which took SearchWall.
	Heap, HeapUsed int64
	SearchWall     time.Duration
	// Resident and ResidentUsed are the same for resident memory, including pages of the mapped
	// files. Maps is the number of new memory maps.
	Resident, ResidentUsed int64
	Maps                   int
}

// Open opens the shards, repeatedly until at least count are open, and searches each once.
func Open(ctx context.Context, paths []string, count int) (o Opened, err error) {
	if len(paths) == 0 {
		return o, errors.New("there are no shards to open")
	}
	// Tables that the process makes once, such as code tables, do not count for any shard.
	for _, p := range paths {
		if err := warm(ctx, p); err != nil {
			return o, err
		}
	}
	o.Shards = max(count, len(paths))
	shards := make([]*search.Shard, 0, o.Shards)
	defer func() { err = errors.Join(err, closeAll(shards)) }()
	heapBefore, residentBefore, mapsBefore, start := heap(), resident(), mappings(), time.Now()
	for i := range o.Shards {
		s, err := search.Open(paths[i%len(paths)])
		if err != nil {
			return o, err
		}
		shards = append(shards, s)
	}
	o.Wall, o.Heap = time.Since(start), heap()-heapBefore
	o.Resident, o.Maps = resident()-residentBefore, mappings()-mapsBefore
	start = time.Now()
	if err := searchEach(ctx, shards); err != nil {
		return o, err
	}
	o.SearchWall, o.HeapUsed = time.Since(start), heap()-heapBefore
	o.ResidentUsed = resident() - residentBefore
	all, err := search.Prepare(&query.Const{Value: true})
	if err != nil {
		return o, err
	}
	for _, s := range shards {
		listed, err := s.List(ctx, all, search.ListOptions{})
		if err != nil {
			return o, fmt.Errorf("listing %s: %w", s.Name(), err)
		}
		o.Repos += len(listed.Repos)
	}
	return o, nil
}

// warm opens and searches a shard, and closes it.
func warm(ctx context.Context, path string) error {
	s, err := search.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(searchEach(ctx, []*search.Shard{s}), s.Close())
}

// searchEach searches each shard for a common word.
func searchEach(ctx context.Context, shards []*search.Shard) error {
	q, err := query.Parse("content:return", query.ParseOptions{})
	if err != nil {
		return fmt.Errorf("parsing the query: %w", err)
	}
	word, err := search.Prepare(q)
	if err != nil {
		return err
	}
	for _, s := range shards {
		if _, err := s.Search(ctx, word, search.Options{Mode: search.TopK, MaxFiles: 50, MaxMatchesPerFile: 100}); err != nil {
			return fmt.Errorf("searching %s: %w", s.Name(), err)
		}
	}
	return nil
}

func closeAll(shards []*search.Shard) error {
	var errs []error
	for _, s := range shards {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// SectionSize is the total length of the sections of one kind.
type SectionSize struct {
	Tag   string
	Bytes int64
}

// Sections adds up the sections of the shards by kind, the largest first. The rest of the file
// sizes is header, checksums and table of contents.
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
