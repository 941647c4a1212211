package build

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/postings"
)

// errClosed is the error of a call after Close.
var errClosed = errors.New("builder is closed")

// Close writes all that is left. The shard is complete only if it succeeds;
// otherwise the error is the first that any call had.
func (b *Builder) Close() (Result, error) {
	if b.workspace == nil {
		return Result{}, errClosed
	}
	err := b.err
	if err == nil {
		err = b.finish()
	}
	b.content.Abandon() // after an error something may still be being encoded
	b.release()
	b.workspace, b.err = nil, errClosed
	if err != nil {
		return Result{}, fmt.Errorf("finish shard: %w", err)
	}
	b.result.Size, b.result.SHA256 = b.w.Size(), b.w.Sum()
	b.result.Languages = slices.Sorted(maps.Keys(b.langs))
	return b.result, nil
}

func (b *Builder) finish() error {
	sorted := make(chan struct{})
	go func() {
		defer close(sorted)
		b.words.Sort()
	}()
	err := b.writeSections()
	<-sorted
	if err != nil {
		return err
	}
	if err := b.words.Write(b.w, b.content.Superblocks(), b.text); err != nil {
		return err
	}
	if err := b.writeNames(); err != nil {
		return err
	}
	return b.w.Close()
}

// writeSections writes what comes before the words.
func (b *Builder) writeSections() error {
	if err := b.content.Close(); err != nil {
		return err
	}
	if err := b.docs.Close(b.w); err != nil {
		return err
	}
	return b.text.Write(b.w, postings.ContentTags, b.content.Superblocks())
}

// writeNames indexes the concatenated paths as if they were one blob. The
// postings of the content are written, so their builder is free.
func (b *Builder) writeNames() error {
	if err := b.addNames(b.names); err != nil {
		return err
	}
	superblocks := (len(b.names) + docstore.SuperblockSize - 1) / docstore.SuperblockSize
	return b.text.Write(b.w, postings.NameTags, uint32(superblocks))
}
