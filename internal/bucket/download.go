package bucket

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

// The pauses between attempts to go on with a broken download.
const (
	resumePause    = 100 * time.Millisecond
	resumePauseMax = 5 * time.Second
)

// download reads an object, or a range of it, and goes on where a connection
// broke. It insists on the object it began with: one that was replaced
// meanwhile ends it with an error.
type download struct {
	s        *S3
	ctx      context.Context
	key      string
	etag     string
	info     Info
	body     io.ReadCloser
	off, end int64
	failures int // since the last byte
}

// download begins to read.
func (s *S3) download(ctx context.Context, key string, opts minio.GetObjectOptions) (*download, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	body, o, _, err := s.core.GetObject(ctx, s.bucket, s.prefix+key, opts)
	if err != nil {
		return nil, s.meaning(ctx, err)
	}
	info := Info{Key: key, Size: o.Size, ModTime: o.LastModified}
	return &download{s: s, ctx: ctx, key: key, etag: o.ETag, info: info, body: body}, nil
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	if d.off >= d.end {
		return 0, io.EOF
	}
	n, err := d.body.Read(p[:min(int64(len(p)), d.end-d.off)])
	d.off += int64(n)
	if n > 0 {
		d.failures = 0
	}
	if err == nil || d.off == d.end {
		return n, nil
	}
	return n, d.resume(err)
}

// resume asks for the rest, after the cause, unless that has failed too often.
func (d *download) resume(cause error) error {
	if errors.Is(cause, io.EOF) {
		cause = io.ErrUnexpectedEOF
	}
	d.failures++
	if d.failures >= d.s.attempts {
		return wrap("read", d.key, cause)
	}
	select {
	case <-d.ctx.Done():
		return d.ctx.Err()
	case <-time.After(min(resumePause<<min(d.failures, 10), resumePauseMax)):
	}
	var opts minio.GetObjectOptions
	if err := errors.Join(opts.SetRange(d.off, d.end-1), opts.SetMatchETag(d.etag)); err != nil {
		return wrap("read", d.key, errors.Join(cause, err))
	}
	body, _, _, err := d.s.core.GetObject(d.ctx, d.s.bucket, d.s.prefix+d.key, opts)
	if err != nil {
		return wrap("read", d.key, errors.Join(cause, err))
	}
	d.body.Close() // broken: what it says now adds nothing
	d.body = body
	return nil
}

// Close implements io.Closer.
func (d *download) Close() error { return d.body.Close() }
