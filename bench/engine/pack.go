package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/merge"
)

// Packed has the results and the cost of merging many shards into few.
type Packed struct {
	Shards []string
	// FromShards is the number of merged shards, FromBytes their total size.
	FromShards           int
	FromBytes, PackBytes int64
	// ContentBytes is the content of the packs, with identical contents of a pack counted once.
	ContentBytes uint64
	Wall         time.Duration
}

// Pack merges shards, in the order of their repos, into packs in the folder out. A pack is full
// when its contents have limit bytes.
func Pack(ctx context.Context, paths []string, out string, limit uint64, effort docstore.Effort) (Packed, error) {
	p := Packed{FromShards: len(paths)}
	start := time.Now()
	for len(paths) > 0 {
		n, err := p.pack(ctx, paths, filepath.Join(out, fmt.Sprintf("pack%d.trawl", len(p.Shards))), limit, effort)
		if err != nil {
			return Packed{}, err
		}
		paths = paths[n:]
	}
	p.Wall = time.Since(start)
	return p, nil
}

// pack merges the first shards into one full pack, and returns how many it took.
func (p *Packed) pack(ctx context.Context, paths []string, name string, limit uint64, effort docstore.Effort) (n int, err error) {
	var inputs []merge.Input
	defer func() {
		for _, in := range inputs {
			err = errors.Join(err, in.File.Close())
		}
	}()
	for content := uint64(0); n < len(paths) && content < limit; n++ {
		in, bytes, err := openInput(paths[n])
		if err != nil {
			return n, err
		}
		inputs = append(inputs, in)
		content += bytes
		p.FromBytes += in.File.Size()
	}
	file, err := os.Create(name)
	if err != nil {
		return n, fmt.Errorf("making a pack: %w", err)
	}
	buffer := bufio.NewWriterSize(file, 1<<20)
	result, err := merge.Shards(ctx, buffer, inputs, merge.Options{Effort: effort})
	if err = errors.Join(err, buffer.Flush(), file.Close()); err != nil {
		return n, fmt.Errorf("writing a pack: %w", err)
	}
	p.Shards = append(p.Shards, name)
	p.PackBytes += result.Size
	p.ContentBytes += result.ContentBytes
	return n, nil
}

// openInput opens a shard to merge all of its repos, and returns how much content it has.
func openInput(path string) (in merge.Input, content uint64, err error) {
	if in.File, err = format.OpenFile(path); err != nil {
		return in, 0, err
	}
	docs, err := docstore.OpenDocs(in.File)
	for i := 0; err == nil && i < docs.Repos(); i++ {
		var r docstore.Repo
		r, err = docs.Repo(i)
		r.FirstDoc, r.Docs = 0, 0
		in.Repos = append(in.Repos, merge.Repo{Record: r})
	}
	if err == nil {
		var c *docstore.Content
		if c, err = docstore.OpenContent(in.File); err == nil {
			return in, c.Bytes(), nil
		}
	}
	return in, 0, errors.Join(err, in.File.Close())
}
