package shardio

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/bucket"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// maxRead bounds the bytes of one request to the bucket.
const maxRead = 1 << 20

// ReaderOptions say how a shard is read.
type ReaderOptions struct {
	// TempDir holds a sparse file with the bytes that were read.
	TempDir string
	// BlockBytes is the unit of reading, at most 1 MiB: a small one suits look-ups,
	// a large one suits reading from start to end.
	BlockBytes int64
	// Pace is called before each request with its number of bytes, and may delay or
	// refuse it. It may be nil.
	Pace func(ctx context.Context, n int) error
}

// Reader is a shard in the bucket that downloads only the blocks that are read, each once. Checksums
// detect damage, and Verify detects another shard in its place. It is safe for concurrent use, except for
// Close.
type Reader struct {
	*format.File

	ctx    context.Context //nolint:containedctx // a format.Fill takes none; this one outlives the reader
	bucket bucket.Bucket
	ref    *catalogv1.ShardRef
	opts   ReaderOptions

	file *os.File // holes where nothing was read yet
	data []byte   // file, mapped

	mu   sync.Mutex
	have []bool // by block
}

// OpenReader opens a shard; the caller closes it. The context covers all reads.
// Errors are *StoreError for the local disk, those of the bucket, and
// format.ErrCorrupt and format.ErrVersion for the shard.
func OpenReader(ctx context.Context, b bucket.Bucket, ref *catalogv1.ShardRef, opts ReaderOptions) (*Reader, error) {
	file, err := os.CreateTemp(opts.TempDir, "read-")
	if err != nil {
		return nil, &StoreError{fmt.Errorf("create a file to read a shard into: %w", err)}
	}
	size := int64(ref.GetSizeBytes())
	r := &Reader{
		ctx: ctx, bucket: b, ref: ref, opts: opts, file: file, have: make([]bool, (size+opts.BlockBytes-1)/opts.BlockBytes),
	}
	if err = file.Truncate(size); err == nil && size > 0 {
		r.data, err = syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(&StoreError{fmt.Errorf("map a file of %d bytes: %w", size, err)}, r.Close())
	}
	if r.File, err = format.NewSparse(ref.GetKey(), r.data, r.fill, nil); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close removes what was read.
func (r *Reader) Close() error {
	var errs []error
	if r.File != nil {
		errs = append(errs, r.File.Close())
	}
	if r.data != nil {
		errs = append(errs, syscall.Munmap(r.data))
	}
	return errors.Join(append(errs, r.file.Close(), os.Remove(r.file.Name()))...)
}

// Verify downloads what was not read yet, and compares the SHA-256 of all bytes with that in the root. A nil
// error also vouches for what was read before. A different digest is format.ErrCorrupt.
func (r *Reader) Verify() error {
	digest := sha256.New()
	for off := 0; off < len(r.data); off += maxRead {
		part := r.data[off:min(off+maxRead, len(r.data))]
		if err := r.fill(int64(off), int64(len(part))); err != nil {
			return err
		}
		digest.Write(part)
	}
	if sum := digest.Sum(nil); !bytes.Equal(sum, r.ref.GetDigest()) {
		return fmt.Errorf("%w: %s has the SHA-256 %x, and its root wants %x", format.ErrCorrupt, r.ref.GetKey(), sum, r.ref.GetDigest())
	}
	return nil
}

// ReadDocs calls f with the shard's documents, which are valid until f returns.
func (r *Reader) ReadDocs(f func(*docstore.Docs) error) error {
	return r.Guard(func() error {
		docs, err := docstore.OpenDocs(r.File)
		if err != nil {
			return err
		}
		return f(docs)
	})
}

// fill is a format.Fill: it downloads the missing blocks of a range, adjacent ones
// together.
func (r *Reader) fill(off, n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	block := r.opts.BlockBytes
	for first := off / block; first*block < off+n; {
		if r.have[first] {
			first++
			continue
		}
		end := first + 1
		for end*block < off+n && !r.have[end] && (end+1-first)*block <= maxRead {
			end++
		}
		if err := r.download(first*block, min(end*block, int64(len(r.data)))); err != nil {
			return fmt.Errorf("read shard %s: %w", r.ref.GetKey(), err)
		}
		for ; first < end; first++ {
			r.have[first] = true
		}
	}
	return nil
}

// download copies the bytes from one offset to another into the file.
func (r *Reader) download(from, to int64) error {
	if r.opts.Pace != nil {
		if err := r.opts.Pace(r.ctx, int(to-from)); err != nil {
			return err
		}
	}
	content, err := r.bucket.GetRange(r.ctx, r.ref.GetKey(), from, to-from)
	if err != nil {
		return err
	}
	defer content.Close()
	into := &localWriter{w: io.NewOffsetWriter(r.file, from)}
	if _, err := io.CopyN(into, content, to-from); err != nil && into.err == nil {
		return err
	}
	if into.err != nil {
		return &StoreError{into.err}
	}
	return nil
}

// localWriter remembers the error of a write to the local disk, which a copy or a
// builder passes on among its own.
type localWriter struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (w *localWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}
