// Package merge writes one shard out of many, without their sources: it merges
// what was indexed, and never goes back to Git.
//
// Several shards may hold documents of one repo, as a base and its deltas do;
// they come out in the order of path and object id. Equal contents, by object
// id, are stored once. What the caller hides is left out, and so is all that
// only hidden documents had. What shards of older formats lack is indexed again, from
// the contents that they hold. The shard is the same, byte for byte, as a
// [build.Builder] writes of the documents that are left.
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
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/words"
)

// ErrInputs means that the inputs do not fit together, or that what is to be
// taken of one is not in it. It is the caller's mistake: no shard is corrupt.
var ErrInputs = errors.New("shards cannot be merged as asked for")

// Input is a shard and what of it stays.
type Input struct {
	// File is the shard. It stays open until Shards returns, and the caller's.
	File *format.File
	// Repos that stay, in any order. Others of the shard are left out.
	Repos []Repo
}

// Repo is a repo of an input.
type Repo struct {
	// Record is what the new shard says of the repo; its name is that in the
	// input. It is the same for all inputs that have the repo. A document is
	// left out if it is on none of the record's branches.
	Record docstore.Repo
	// Hidden are the documents left out, ascending, counted from the repo's
	// first one in this input.
	Hidden []uint32
	// Branches are, for each of Record's, the place of the input's branch that has its
	// documents, among those of the repo there, -1 for none; nil: that of the same name.
	Branches []int
}

// Options say how to merge. The zero value is good for shards that are wanted soon.
type Options struct {
	// Effort to make the content small.
	Effort docstore.Effort
	// Processors that may work at once, the caller's one of them. Default: all.
	Processors int
	// Pace is called with how many bytes of the inputs, or of what they hold,
	// are taken next. It may wait, to leave processor and disk to others; an
	// error of it ends the merge. Nil: all is done at once.
	Pace func(ctx context.Context, bytes int) error
	// TempDir is the folder for temporary files, which have no name once they are
	// made. Default: os.TempDir.
	TempDir string
	// Memory bounds the postings that are held in memory, in bytes: those that wait for
	// their section, and those of contents that have to be indexed again. More of
	// them are in temporary files. Default: 128 MiB.
	Memory int64
}

const defaultMemory = 128 << 20

// Shards writes the shard of what stays of the inputs to w, which is not closed.
// Nothing of it is good if there is an error: that of the context, of Pace or of w,
// ErrInputs, or a *format.CorruptError of an input.
func Shards(ctx context.Context, w io.Writer, inputs []Input, opts Options) (build.Result, error) {
	if opts.Processors <= 0 {
		opts.Processors = runtime.GOMAXPROCS(0)
	}
	if opts.Memory <= 0 {
		opts.Memory = defaultMemory
	}
	m := &merger{ctx: ctx, opts: opts, docs: docstore.NewDocsWriter(), oids: map[string]uint32{}, langs: map[string]bool{}, ngrams: postings.NewBuilder(postings.Config{})}
	files := make([]*format.File, len(inputs))
	for i := range inputs {
		files[i] = inputs[i].File
	}
	err := format.GuardFiles(files, func() error { return m.run(w, inputs) })
	if err = errors.Join(err, m.close()); err != nil {
		return build.Result{}, fmt.Errorf("merge %d shards: %w", len(inputs), err)
	}
	return m.result, nil
}

// merger is one call of Shards.
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

	indexes []index      // where postings of the blobs are
	origins []words.Blob // for each blob, its number in one of them
	upgrade *indexer     // of contents whose index is too old; nil if there are none
	ngrams  *postings.Builder
}

// index is a shard, or a part of one, with the n-grams and words of some contents.
type index struct {
	file   *format.File
	places []uint32 // of its superblocks in the new shard
}

// run does all that reads the inputs.
func (m *merger) run(w io.Writer, inputs []Input) error {
	m.inputs = make([]*input, len(inputs))
	for i, in := range inputs {
		var err error
		if m.inputs[i], err = openInput(in); err != nil {
			return err
		}
	}
	if err := m.plan(); err != nil {
		return err
	}
	out := format.NewWriter(w)
	for _, write := range []func(*format.Writer) error{m.writeContent, m.docs.Close, m.writePostings, m.writeWords, m.writeNames} {
		if err := write(out); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	m.result.Size, m.result.SHA256 = out.Size(), out.Sum()
	m.result.Languages = slices.Sorted(maps.Keys(m.langs))
	return nil
}

// close gives back what is held for the indexes of contents that were indexed again.
func (m *merger) close() error {
	if m.upgrade == nil {
		return nil
	}
	return m.upgrade.close()
}

// pace reports that n bytes are taken next.
func (m *merger) pace(bytes int) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	if m.opts.Pace == nil {
		return nil
	}
	return m.opts.Pace(m.ctx, bytes)
}
