package build

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inorder"
	"github.com/trawl-search/trawl/index/inverted"
)

// errClosed is the error of a call after Close.
var errClosed = errors.New("builder is closed")

// Close writes everything that is left. The shard is complete only if it succeeds; otherwise the
// error is the first of any call.
func (b *Builder) Close() (Result, error) {
	if b.collect.workspace == nil {
		return Result{}, errClosed
	}
	err := b.err
	if err == nil {
		err = b.finish()
	}
	b.content.Abandon()  // after an error a unit may still be in an encoder
	_ = b.collect.wait() // and a batch in the collector
	b.collect.release()
	b.collect, b.err = collector{}, errClosed
	if err != nil {
		return Result{}, fmt.Errorf("finish shard: %w", err)
	}
	b.result.Size, b.result.SHA256 = b.w.Size(), b.w.Sum()
	b.result.Languages = slices.Sorted(maps.Keys(b.langs))
	return b.result, nil
}

// mostHeld bounds the memory of words up to which their index is built concurrently with that of
// the n-grams and held until its turn. It takes a third of that memory. A large shard is written in
// sequence, since the words of 256 MiB of source would add 60 MB to the peak of 425.
const mostHeld = 64 << 20

func (b *Builder) finish() error {
	if err := b.collect.finish(); err != nil {
		return err
	}
	var held *inorder.Sections // the words, if another processor writes them
	made := make(chan error, 1)
	if b.opts.Processors > 1 && b.collect.words.Memory() <= mostHeld {
		held = &inorder.Sections{}
		go func() { made <- b.writeWords(held) }()
	}
	err := b.writeSections()
	if held != nil {
		err = errors.Join(err, <-made)
	}
	switch {
	case err != nil:
		return err
	case held != nil:
		err = held.Replay(b.w)
	default:
		err = b.writeWords(b.w)
	}
	if err != nil {
		return err
	}
	if err := b.writeNames(); err != nil {
		return err
	}
	return b.w.Close()
}

// writeWords writes the index of words.
func (b *Builder) writeWords(w format.SectionWriter) error {
	return b.collect.words.Write(w, b.content.Superblocks(), b.collect.lexicon)
}

// writeSections writes what comes before the words.
func (b *Builder) writeSections() error {
	if err := b.content.Close(); err != nil {
		return err
	}
	if err := b.docs.Close(b.w); err != nil {
		return err
	}
	return b.collect.text.Write(b.w, inverted.ContentTags, b.content.Superblocks())
}

// writeNames indexes the concatenated paths as if they were one blob. The
// postings of the content are written, so their builder is free.
func (b *Builder) writeNames() error {
	if err := b.collect.addNames(b.names); err != nil {
		return err
	}
	superblocks := docstore.SuperblocksOf(uint64(len(b.names)))
	return b.collect.text.Write(b.w, inverted.NameTags, superblocks)
}
