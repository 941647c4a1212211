package compact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/bucket"
)

// blockSize is the grain in which shards are read, in bytes. Merging reads the
// documents of a repo from their first to their last, and the posting lists.
const blockSize = 1 << 20

// sparse is a shard of the bucket of which only what is read is brought, into a
// file with holes. Checksums tell what is damaged.
type sparse struct {
	*format.File

	file *os.File
	data []byte
}

// source brings bytes of one object; each block once.
type source struct {
	ctx    context.Context //nolint:containedctx // a Fill has none, and it lives as long as one merge
	bucket bucket.Bucket
	pace   func(ctx context.Context, n int) error
	key    string
	size   int64
	file   *os.File

	mu   sync.Mutex
	have []bool
}

// openSparse opens a shard in a new file of the folder. Close removes it.
func openSparse(ctx context.Context, b bucket.Bucket, dir, key string, size int64, pace func(context.Context, int) error) (*sparse, error) {
	file, err := os.CreateTemp(dir, "compact-")
	if err != nil {
		return nil, fmt.Errorf("make a file for a shard: %w", err)
	}
	s := &sparse{file: file}
	if err = file.Truncate(size); err == nil && size > 0 {
		s.data, err = syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map a file of %d bytes: %w", size, err), s.Close())
	}
	from := &source{ctx: ctx, bucket: b, pace: pace, key: key, size: size, file: file, have: make([]bool, (size+blockSize-1)/blockSize)}
	if s.File, err = format.NewSparse(key, s.data, from.fill); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close forgets what was brought.
func (s *sparse) Close() error {
	var errs []error
	if s.File != nil {
		errs = append(errs, s.File.Close())
	}
	if s.data != nil {
		errs = append(errs, syscall.Munmap(s.data))
	}
	return errors.Join(append(errs, s.file.Close(), os.Remove(s.file.Name()))...)
}

// fill is a format.Fill.
func (s *source) fill(off, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := off / blockSize; at*blockSize < off+n; at++ {
		if s.have[at] {
			continue
		}
		if err := s.bring(at*blockSize, min(blockSize, s.size-at*blockSize)); err != nil {
			return err
		}
		s.have[at] = true
	}
	return nil
}

func (s *source) bring(off, n int64) error {
	if err := s.pace(s.ctx, int(n)); err != nil {
		return err
	}
	content, err := s.bucket.GetRange(s.ctx, s.key, off, n)
	if err != nil {
		return err
	}
	defer content.Close()
	if _, err := io.CopyN(io.NewOffsetWriter(s.file, off), content, n); err != nil {
		return fmt.Errorf("read shard %s: %w", s.key, err)
	}
	return nil
}
