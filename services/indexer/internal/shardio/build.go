// Package shardio turns the documents of a repo into shard objects in the
// bucket: it builds one shard after the other in a temporary file and uploads
// each, by the name that its digest and the job's fencing token give it.
package shardio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// StoreError is a failure of the bucket or of the local disk: not the repo's
// fault, and worth another try.
type StoreError struct{ Err error }

// Error implements error.
func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// BuildError is a failure of the shard builder on documents that it should
// have been able to take.
type BuildError struct{ Err error }

// Error implements error.
func (e *BuildError) Error() string { return "building a shard: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *BuildError) Unwrap() error { return e.Err }

// Builder makes shards. It is safe for concurrent use.
type Builder struct {
	Bucket bucket.Bucket
	// Fence is the fencing token of the lease that the shards are made under.
	Fence int64
	// TempDir is where shards are written before their upload.
	TempDir string
	Options build.Options
	// Progress is called after every document, with how many there were. It
	// must be quick.
	Progress func(done uint64)
}

// Result is what became of the documents.
type Result struct {
	Shards []*catalogv1.ShardRef
	// Kept are shards of the generation before that stay beside them: it is for
	// whoever builds on those.
	Kept []*catalogv1.ShardRef
	// Documents counts all, Skipped those found by name only.
	Documents, Skipped uint64
	// ContentBytes are those of distinct contents in each shard.
	ContentBytes uint64
}

// Build writes all documents of src into shards of repo and uploads them. There
// is at least one shard, also without documents. What was uploaded before an
// error stays until it is collected as garbage: nobody ever names it.
func (b *Builder) Build(ctx context.Context, repo docstore.Repo, src gitsource.Source) (Result, error) {
	run := &run{Builder: b, repo: repo}
	defer run.discard()
	for doc, err := range src.Documents(ctx) {
		if err != nil {
			return Result{}, err
		}
		if err := run.add(ctx, doc); err != nil {
			return Result{}, err
		}
	}
	if run.current == nil && len(run.result.Shards) == 0 {
		if err := run.begin(); err != nil {
			return Result{}, err
		}
	}
	return run.result, run.finish(ctx)
}

// run is one Build.
type run struct {
	*Builder
	repo    docstore.Repo
	file    *os.File
	sink    *sink
	current *build.Builder
	result  Result
}

func (r *run) add(ctx context.Context, doc *gitsource.Document) error {
	if r.current != nil && r.current.Full() {
		if err := r.finish(ctx); err != nil {
			return err
		}
	}
	if r.current == nil {
		if err := r.begin(); err != nil {
			return err
		}
	}
	err := r.current.Add(build.Document{
		Path: doc.Path, Content: doc.Content, Branches: doc.Branches, Language: doc.Language,
		OID: doc.OID, Skip: doc.Skip, Size: doc.Size,
	})
	if err != nil {
		return r.blame(err)
	}
	if r.result.Documents++; r.Progress != nil {
		r.Progress(r.result.Documents)
	}
	return nil
}

// begin starts a shard in a temporary file.
func (r *run) begin() error {
	file, err := os.CreateTemp(r.TempDir, "shard-")
	if err != nil {
		return &StoreError{fmt.Errorf("making a file for a shard: %w", err)}
	}
	r.file, r.sink = file, &sink{file: file}
	if r.current, err = build.NewBuilder(r.sink, r.Options); err != nil {
		return r.blame(err)
	}
	if err := r.current.AddRepo(r.repo); err != nil {
		return r.blame(err)
	}
	return nil
}

// finish ends the current shard, if there is one, and uploads it.
func (r *run) finish(ctx context.Context) error {
	if r.current == nil {
		return nil
	}
	built, err := r.current.Close()
	r.current = nil
	if err != nil {
		return r.blame(err)
	}
	ref := &catalogv1.ShardRef{
		Digest: built.SHA256[:], Key: catalog.ShardKey(r.Fence, built.SHA256), SizeBytes: uint64(built.Size),
		FormatVersion: format.WriterVersion, Documents: built.Documents,
		ContentBytes: built.ContentBytes, Languages: built.Languages,
		LiveDocuments: built.Documents, LiveContentBytes: built.ContentBytes, LiveSkippedDocuments: built.Skipped,
	}
	if err := r.upload(ctx, ref, built); err != nil {
		return err
	}
	r.result.Shards = append(r.result.Shards, ref)
	r.result.Skipped += built.Skipped
	r.result.ContentBytes += built.ContentBytes
	r.discard()
	return nil
}

// upload puts the finished file into the bucket. An object that is there already
// was put by an earlier attempt of this very call: no other job has the fence.
func (r *run) upload(ctx context.Context, ref *catalogv1.ShardRef, built build.Result) error {
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return &StoreError{fmt.Errorf("reading a shard for upload: %w", err)}
	}
	err := r.Bucket.Put(ctx, ref.Key, r.file, bucket.PutOptions{Size: built.Size, SHA256: built.SHA256, IfAbsent: true})
	if err == nil || errors.Is(err, bucket.ErrExists) {
		return nil
	}
	return &StoreError{fmt.Errorf("uploading a shard: %w", err)}
}

// blame tells errors of the disk, which the builder passes on, from its own.
func (r *run) blame(err error) error {
	if r.sink.err != nil {
		return &StoreError{fmt.Errorf("writing a shard: %w", r.sink.err)}
	}
	return &BuildError{err}
}

// discard removes the temporary file, and what is built of an unfinished shard.
func (r *run) discard() {
	if r.current != nil {
		_, _ = r.current.Close() // it only gives its memory back
		r.current = nil
	}
	if r.file != nil {
		r.file.Close()
		_ = os.Remove(r.file.Name()) // at the next start at the latest
		r.file = nil
	}
}

// sink remembers the error of the disk.
type sink struct {
	file *os.File
	err  error
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}
