// Package shardio writes shards and manifests into the bucket and reads them back.
// A Builder turns the documents of a repo into shards, or those of several small repos into one, a Reader downloads only the
// parts of a shard that are read, and UploadShard and PutManifest store objects
// under names that hold their digest and the writer's fencing token.
package shardio

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/gitsource"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// StoreError is a failure of the bucket or of the local disk. The repo did not
// cause it, and another attempt may succeed.
type StoreError struct{ Err error }

// Error implements error.
func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// BuildError is a failure of the shard builder on documents that it should accept.
type BuildError struct{ Err error }

// Error implements error.
func (e *BuildError) Error() string { return "building a shard: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *BuildError) Unwrap() error { return e.Err }

// Builder builds and uploads shards. It is safe for concurrent use.
type Builder struct {
	Bucket bucket.Bucket
	// Fence is the fencing token of the lease under which the shards are built.
	Fence int64
	// TempDir holds each shard until it is uploaded.
	TempDir string
	Options build.Options
	// Progress is called after every document with the number of documents so far.
	// It must return quickly. It may be nil.
	Progress func(done uint64)
}

// Result describes the shards of one Build.
type Result struct {
	Shards []*catalogv1.ShardRef
	// Documents counts all documents, Skipped those found by name only.
	Documents, Skipped uint64
	// ContentBytes counts the bytes of distinct contents in each shard.
	ContentBytes uint64
	// Sketch is Root.sketch for these documents.
	Sketch []uint32
}

// Build writes all documents of src into shards of repo and uploads them. It makes
// at least one shard, even without documents. Shards uploaded before an error are
// named by no root, and garbage collection removes them. Errors are *StoreError,
// *BuildError and those of src.
func (b *Builder) Build(ctx context.Context, repo docstore.Repo, src gitsource.Source) (Result, error) {
	w := &writer{Builder: b}
	defer w.discard()
	for doc, err := range src.Documents(ctx) {
		if err != nil {
			return Result{}, err
		}
		if w.current != nil && w.current.Full() {
			if err := w.finish(ctx); err != nil {
				return Result{}, err
			}
		}
		if w.current == nil {
			if err := w.start(repo); err != nil {
				return Result{}, err
			}
		}
		if err := w.add(doc); err != nil {
			return Result{}, err
		}
	}
	if w.current == nil && len(w.result.Shards) == 0 {
		if err := w.start(repo); err != nil {
			return Result{}, err
		}
	}
	err := w.finish(ctx)
	w.result.Sketch = w.sketch.ids()
	return w.result, err
}

// Member is one repo of a pack.
type Member struct {
	Repo docstore.Repo
	// Docs are all its documents, in the order in which a gitsource.Source yields them.
	Docs []build.Document
}

// Pack writes all documents of the members, in ascending order of their names, into one
// shard and uploads it. It returns the reference for the root of each. Errors are those
// of Build.
func (b *Builder) Pack(ctx context.Context, members []Member) ([]*catalogv1.ShardRef, error) {
	w := &writer{Builder: b}
	defer w.discard()
	for i := range members {
		if err := w.start(members[i].Repo); err != nil {
			return nil, err
		}
		for j := range members[i].Docs {
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			if err := w.add(&members[i].Docs[j]); err != nil {
				return nil, err
			}
		}
	}
	if err := w.finish(ctx); err != nil {
		return nil, err
	}
	refs := make([]*catalogv1.ShardRef, len(members))
	for i := range members {
		refs[i] = members[i].ref(w.result.Shards[0])
		refs[i].RepoNumber = uint32(i)
	}
	return refs, nil
}

// Sketch returns Root.sketch for the member's documents.
func (m *Member) Sketch() []uint32 {
	var s sketch
	for i := range m.Docs {
		s.add(&m.Docs[i])
	}
	return s.ids()
}

// ref returns the reference to a shard with what it has of the member.
func (m *Member) ref(shard *catalogv1.ShardRef) *catalogv1.ShardRef {
	ref := proto.CloneOf(shard)
	ref.LiveDocuments, ref.LiveContentBytes, ref.LiveSkippedDocuments = uint64(len(m.Docs)), 0, 0
	counted, languages := map[string]bool{}, map[string]bool{}
	for _, d := range m.Docs {
		if d.Skip != docstore.NotSkipped {
			ref.LiveSkippedDocuments++
			continue
		}
		if d.Language != "" {
			languages[d.Language] = true
		}
		if oid := string(d.OID); !counted[oid] {
			counted[oid] = true
			ref.LiveContentBytes += uint64(len(d.Content))
		}
	}
	ref.Languages = slices.Sorted(maps.Keys(languages))
	return ref
}

// writer is the state of one Build or Pack.
type writer struct {
	*Builder
	file    *os.File
	local   *localWriter   // writes to file
	current *build.Builder // nil between shards
	result  Result
	sketch  sketch
}

// add adds a document of the repo that was started last.
func (w *writer) add(doc *build.Document) error {
	if err := w.current.Add(*doc); err != nil {
		return w.buildError(err)
	}
	w.sketch.add(doc)
	if w.result.Documents++; w.Progress != nil {
		w.Progress(w.result.Documents)
	}
	return nil
}

// start starts a repo in the current shard, or in a new one in a temporary file.
func (w *writer) start(repo docstore.Repo) error {
	if w.current == nil {
		if err := w.startShard(); err != nil {
			return err
		}
	}
	if err := w.current.AddRepo(repo); err != nil {
		return w.buildError(err)
	}
	return nil
}

func (w *writer) startShard() error {
	file, err := os.CreateTemp(w.TempDir, "shard-")
	if err != nil {
		return &StoreError{fmt.Errorf("create a file for a shard: %w", err)}
	}
	w.file, w.local = file, &localWriter{w: file}
	if w.current, err = build.NewBuilder(w.local, w.Options); err != nil {
		return w.buildError(err)
	}
	return nil
}

// finish completes and uploads the current shard, if there is one.
func (w *writer) finish(ctx context.Context) error {
	if w.current == nil {
		return nil
	}
	built, err := w.current.Close()
	w.current = nil
	if err != nil {
		return w.buildError(err)
	}
	ref, err := UploadShard(ctx, w.Bucket, w.Fence, w.file, built, nil)
	if err != nil {
		return err
	}
	w.result.Shards = append(w.result.Shards, ref)
	w.result.Skipped += built.Skipped
	w.result.ContentBytes += built.ContentBytes
	w.discard()
	return nil
}

// buildError returns a *StoreError if the disk failed, else a *BuildError.
func (w *writer) buildError(err error) error {
	if w.local.err != nil {
		return &StoreError{fmt.Errorf("write a shard: %w", w.local.err)}
	}
	return &BuildError{err}
}

// discard removes the temporary file and frees the memory of an unfinished shard.
func (w *writer) discard() {
	if w.current != nil {
		_, _ = w.current.Close() // the result of an unfinished shard is of no use
		w.current = nil
	}
	if w.file != nil {
		w.file.Close()
		_ = os.Remove(w.file.Name()) // the next start removes what stays
		w.file = nil
	}
}
