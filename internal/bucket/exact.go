package bucket

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// exact passes content on and compares it with the announcement. It withholds the last
// bytes until all of them are verified, so no reader sees the end of wrong content.
type exact struct {
	ctx    context.Context
	r      io.Reader
	left   int64
	hash   hash.Hash
	digest [32]byte
	err    error // set at the end or after a fault
}

func newExact(ctx context.Context, r io.Reader, opts PutOptions) *exact {
	return &exact{ctx: ctx, r: r, left: opts.Size, hash: sha256.New(), digest: opts.SHA256}
}

// Read implements io.Reader.
func (e *exact) Read(p []byte) (int, error) {
	if e.err != nil || len(p) == 0 {
		return 0, e.err
	}
	n, err := e.read(p)
	if err != nil {
		e.err = err
	}
	return n, err
}

func (e *exact) read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	n := 0
	if e.left > 0 {
		var err error
		n, err = e.r.Read(p[:min(int64(len(p)), e.left)])
		e.hash.Write(p[:n])
		e.left -= int64(n)
		if e.left > 0 {
			return n, tooShort(err)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	if err := e.finish(); err != nil {
		return 0, err
	}
	return n, io.EOF
}

// tooShort is the meaning of err while bytes are still missing.
func tooShort(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrSize
	}
	return err
}

// finish makes sure that nothing follows and the digest is right.
func (e *exact) finish() error {
	var next [1]byte
	switch _, err := io.ReadFull(e.r, next[:]); {
	case err == nil:
		return ErrSize
	case !errors.Is(err, io.EOF):
		return err
	}
	if e.digest != [32]byte{} && [32]byte(e.hash.Sum(nil)) != e.digest {
		return ErrChecksum
	}
	return nil
}

// boundReader is a ReadCloser that ends with its context.
type boundReader struct {
	ctx context.Context
	io.Reader
	io.Closer
}

// Read implements io.Reader.
func (b boundReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}
