package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/bucket"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// pieceBytes is what is read of a shard at once.
const pieceBytes = 128 << 10

// withDocs runs f on the documents of a shard in the bucket, of which only what f
// looks at is read.
func withDocs(ctx context.Context, b bucket.Bucket, ref *catalogv1.ShardRef, f func(*docstore.Docs) error) (err error) {
	size := int64(ref.GetSizeBytes())
	if size < format.HeaderSize+format.FooterSize {
		return fmt.Errorf("a shard of %d bytes: %w", size, format.ErrCorrupt)
	}
	// Address space, of which pages that are never written take no memory.
	data, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("make room for %d bytes: %w", size, err)
	}
	defer func() { err = errors.Join(err, syscall.Munmap(data)) }()
	p := &partial{ctx: ctx, bucket: b, key: ref.GetKey(), data: data, have: make([]bool, (size+pieceBytes-1)/pieceBytes)}
	file, err := format.NewSparse(ref.GetKey(), data, p.fill)
	if err != nil {
		return err
	}
	return file.Guard(func() error {
		docs, err := docstore.OpenDocs(file)
		if err != nil {
			return err
		}
		return f(docs)
	})
}

// partial is an object of which some pieces are there.
type partial struct {
	ctx    context.Context
	bucket bucket.Bucket
	key    string
	data   []byte

	mu   sync.Mutex
	have []bool
}

// fill is a format.Fill.
func (p *partial) fill(off, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n <= 0 {
		return nil
	}
	last := int((off + n - 1) / pieceBytes)
	for i := int(off / pieceBytes); i <= last; i++ {
		if p.have[i] {
			continue
		}
		end := i + 1
		for end <= last && !p.have[end] {
			end++
		}
		if err := p.read(int64(i)*pieceBytes, min(int64(end)*pieceBytes, int64(len(p.data)))); err != nil {
			return err
		}
		for ; i < end; i++ {
			p.have[i] = true
		}
	}
	return nil
}

func (p *partial) read(from, to int64) error {
	r, err := p.bucket.GetRange(p.ctx, p.key, from, to-from)
	if err != nil {
		return err
	}
	_, err = io.ReadFull(r, p.data[from:to])
	return errors.Join(err, r.Close())
}
