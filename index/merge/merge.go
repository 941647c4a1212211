// Package merge writes one shard from many, without their sources: it merges what was indexed and
// never goes back to Git.
//
// Several shards may have documents of one repo, such as a base and its deltas. The new shard has
// them in the order of path and object id. Contents with the same object id are stored once.
// Documents that the caller hides are omitted, and so is everything that only hidden documents had.
// Contents whose definitions other rules found are indexed again. The result equals,
// byte for byte, what a [build.Builder] writes from the remaining documents.
package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inverted"
)

// ErrInputs means that the inputs do not fit together, or that an input does not have what should
// be taken from it. It is the caller's mistake: no shard is corrupt.
var ErrInputs = errors.New("shards cannot be merged as requested")

// Input is a shard and the part of it that stays.
type Input struct {
	// File is the shard. The caller owns it and must keep it open until Shards returns.
	File *format.File
	// Repos that stay, in any order. Other repos of the shard are omitted.
	Repos []Repo
}

// Repo is a repo of an input.
type Repo struct {
	// Record is the new shard's record of the repo. Its name is that in the input. It must be the
	// same for all inputs with the repo. A document on none of the record's branches is omitted.
	Record docstore.Repo
	// Hidden are the omitted documents, ascending, counted from the repo's first one in this input.
	Hidden []uint32
	// Branches has, for each of Record's branches, the index of the input's branch with its
	// documents, or -1 for none. Nil means the branch of the same name.
	Branches []int
}

// Options configure a merge. The zero value suits shards that are needed soon.
type Options struct {
	// Effort to make the content small.
	Effort docstore.Effort
	// Processors that may work concurrently, including the caller's. Default: all.
	Processors int
	// Pace is called with the number of bytes, of the inputs or of their contents, to be read next.
	// It may wait, to leave processor and disk to others. An error of it ends the merge. Nil means
	// no waiting.
	Pace func(ctx context.Context, bytes int) error
	// TempDir is the folder for temporary files, whose names are removed as soon as they exist.
	// Default: os.TempDir.
	TempDir string
	// Memory bounds the bytes of postings in memory: those that wait for their section, and those
	// of contents that are indexed again. More postings go to temporary files. Default: 128 MiB.
	Memory int64
}

const defaultMemory = 128 << 20

// Shards writes the shard of everything that stays of the inputs to w, which it does not close. If
// it returns an error, the output is useless. The error is that of the context, of Pace or of w,
// ErrInputs, or a *format.CorruptError of an input.
func Shards(ctx context.Context, w io.Writer, inputs []Input, opts Options) (build.Result, error) {
	m := newMerger(ctx, opts)
	files := make([]*format.File, len(inputs))
	for i := range inputs {
		files[i] = inputs[i].File
	}
	var out *format.Writer
	err := format.GuardFiles(files, func() error {
		if err := m.open(inputs); err != nil {
			return err
		}
		if err := m.plan(); err != nil {
			return err
		}
		out = format.NewWriter(w)
		if err := m.write(out); err != nil {
			return err
		}
		return out.Close()
	})
	if err = errors.Join(err, m.close()); err != nil {
		return build.Result{}, fmt.Errorf("merge %d shards: %w", len(inputs), err)
	}
	m.result.Size, m.result.SHA256 = out.Size(), out.Sum()
	m.result.Languages = slices.Sorted(maps.Keys(m.langs))
	return m.result, nil
}

// merger is one call of Shards or Verify.
type merger struct {
	ctx    context.Context //nolint:containedctx // it lives as long as the call
	opts   Options
	inputs []*input
	docs   *docstore.DocsWriter
	names  []byte // all paths
	blobs  []source
	oids   map[string]uint32 // blobs by object id
	langs  map[string]bool
	result build.Result

	superblocks uint32 // of the blobs

	indexes []inverted.Source // shards, and parts of one, with the n-grams and words of the blobs
	again   *indexer          // for contents whose definitions other rules found; nil if there are none
	afresh  bool              // all contents are indexed again
	ngrams  *inverted.NgramBuilder
}

func newMerger(ctx context.Context, opts Options) *merger {
	if opts.Processors <= 0 {
		opts.Processors = runtime.GOMAXPROCS(0)
	}
	if opts.Memory <= 0 {
		opts.Memory = defaultMemory
	}
	return &merger{ctx: ctx, opts: opts, docs: docstore.NewDocsWriter(), oids: map[string]uint32{}, langs: map[string]bool{}, ngrams: inverted.NewNgramBuilder()}
}

func (m *merger) open(inputs []Input) error {
	m.inputs = make([]*input, len(inputs))
	for i, in := range inputs {
		var err error
		if m.inputs[i], err = openInput(in); err != nil {
			return err
		}
	}
	return nil
}

// write writes all sections.
func (m *merger) write(w *format.Writer) error {
	for _, write := range []func(*format.Writer) error{m.writeContent, m.docs.Close, m.writePostings, m.writeWords, m.writeNames} {
		if err := write(w); err != nil {
			return err
		}
	}
	return nil
}

// close frees the indexes of contents that were indexed again.
func (m *merger) close() error {
	if m.again == nil {
		return nil
	}
	return m.again.close()
}

// pace announces that the next n bytes will be read.
func (m *merger) pace(bytes int) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	if m.opts.Pace == nil {
		return nil
	}
	return m.opts.Pace(m.ctx, bytes)
}
