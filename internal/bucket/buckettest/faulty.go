package buckettest

import (
	"context"
	"io"
	"iter"

	"github.com/trawl-search/trawl/internal/bucket"
)

// Faulty is a bucket that fails on demand.
type Faulty struct {
	bucket.Bucket
	// Fault is called before each call, with the method's name in lower case ("put",
	// "get", "getrange", "stat", "list", "delete") and the key or prefix. If it returns
	// an error, the call fails with that. It may block until the context ends, and must
	// be safe for concurrent use.
	Fault func(ctx context.Context, op, key string) error
}

var _ bucket.Bucket = (*Faulty)(nil)

func (f *Faulty) fault(ctx context.Context, op, key string) error {
	if err := f.Fault(ctx, op, key); err != nil {
		return &bucket.Error{Op: op, Key: key, Err: err}
	}
	return nil
}

// Put implements bucket.Bucket.
func (f *Faulty) Put(ctx context.Context, key string, r io.Reader, opts bucket.PutOptions) error {
	if err := f.fault(ctx, "put", key); err != nil {
		return err
	}
	return f.Bucket.Put(ctx, key, r, opts)
}

// Get implements bucket.Bucket.
func (f *Faulty) Get(ctx context.Context, key string) (io.ReadCloser, bucket.Info, error) {
	if err := f.fault(ctx, "get", key); err != nil {
		return nil, bucket.Info{}, err
	}
	return f.Bucket.Get(ctx, key)
}

// GetRange implements bucket.Bucket.
func (f *Faulty) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if err := f.fault(ctx, "getrange", key); err != nil {
		return nil, err
	}
	return f.Bucket.GetRange(ctx, key, off, n)
}

// Stat implements bucket.Bucket.
func (f *Faulty) Stat(ctx context.Context, key string) (bucket.Info, error) {
	if err := f.fault(ctx, "stat", key); err != nil {
		return bucket.Info{}, err
	}
	return f.Bucket.Stat(ctx, key)
}

// List implements bucket.Bucket.
func (f *Faulty) List(ctx context.Context, prefix string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		if err := f.fault(ctx, "list", prefix); err != nil {
			yield(bucket.Info{}, err)
			return
		}
		f.Bucket.List(ctx, prefix)(yield)
	}
}

// Delete implements bucket.Bucket.
func (f *Faulty) Delete(ctx context.Context, key string) error {
	if err := f.fault(ctx, "delete", key); err != nil {
		return err
	}
	return f.Bucket.Delete(ctx, key)
}
