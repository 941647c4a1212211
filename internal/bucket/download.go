package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/trawl-search/trawl/internal/wait"
)

// The pauses between attempts to resume a broken download.
const (
	resumePause    = 100 * time.Millisecond
	resumePauseMax = 5 * time.Second
)

// stallTime is how long a download may receive nothing before its connection is given
// up: a hanging server does not break connections.
const stallTime = 30 * time.Second

// errStalled is the cause of a connection that was given up.
var errStalled = errors.New("nothing came for too long")

// download reads an object or a range of it, and resumes after a connection breaks or
// stalls. It fails if the object was replaced since the start.
type download struct {
	s        *S3
	ctx      context.Context
	key      string
	etag     string
	info     Info
	body     io.ReadCloser
	give     context.CancelCauseFunc // gives the body's connection up
	off, end int64
	failures int // since the last byte
}

// download starts a download.
func (s *S3) download(ctx context.Context, key string, opts minio.GetObjectOptions) (*download, error) {
	d := &download{s: s, ctx: ctx, key: key}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	o, err := d.connect(opts)
	if err != nil {
		return nil, s.meaning(ctx, err)
	}
	d.etag, d.info = o.ETag, Info{Key: key, Size: o.Size, ModTime: o.LastModified}
	return d, nil
}

// connect requests what is to be read next, in place of the body before.
func (d *download) connect(opts minio.GetObjectOptions) (minio.ObjectInfo, error) {
	connection, give := context.WithCancelCause(d.ctx)
	body, o, answer, err := d.s.core.GetObject(connection, d.s.bucket, d.s.prefix+d.key, opts)
	if err == nil {
		if err = checkRange(opts.Header().Get("Range"), answer.Get("Content-Range")); err != nil {
			_ = body.Close() // its error adds nothing
		}
	}
	if err != nil {
		give(nil)
		return o, err
	}
	if d.body != nil {
		_ = d.body.Close() // broken: its error adds nothing
		d.give(nil)
	}
	d.body, d.give = body, give
	return o, nil
}

// checkRange checks that a store sent the range that it was asked for, or as much of it as the object has. Some proxies
// ignore that a part is wanted, and the bytes do not say where they are from.
func checkRange(asked, sent string) error {
	var from, to, first, last int64
	if asked == "" {
		return nil
	}
	_, err := fmt.Sscanf(asked, "bytes=%d-%d", &from, &to)
	if err == nil {
		_, err = fmt.Sscanf(sent, "bytes %d-%d/", &first, &last)
	}
	if err != nil || first != from || last > to {
		return fmt.Errorf("the store was asked for bytes %d-%d, and sent %q: does a proxy in front of it ignore ranges?", from, to, cmp.Or(sent, "all"))
	}
	return nil
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	if d.off >= d.end {
		return 0, io.EOF
	}
	n, err := d.read(p[:min(int64(len(p)), d.end-d.off)])
	d.off += int64(n)
	if n > 0 {
		d.failures = 0
	}
	if err == nil || d.off == d.end {
		return n, nil
	}
	return n, d.resume(err)
}

// read reads from the connection, and gives it up if it stalls.
func (d *download) read(p []byte) (int, error) {
	give := d.give
	watch := time.AfterFunc(d.s.stall, func() { give(errStalled) })
	defer watch.Stop()
	n, err := d.body.Read(p)
	if errors.Is(err, context.Canceled) && d.ctx.Err() == nil {
		err = errStalled
	}
	return n, err
}

// resume requests the rest after a failure with the cause, unless there were too many
// in a row.
func (d *download) resume(cause error) error {
	if errors.Is(cause, io.EOF) {
		cause = io.ErrUnexpectedEOF
	}
	d.failures++
	if d.failures >= d.s.attempts {
		return wrap("read", d.key, cause)
	}
	if !wait.Sleep(d.ctx, wait.Double(resumePause, d.failures, resumePauseMax)) {
		return d.ctx.Err()
	}
	var opts minio.GetObjectOptions
	if err := errors.Join(opts.SetRange(d.off, d.end-1), opts.SetMatchETag(d.etag)); err != nil {
		return wrap("read", d.key, errors.Join(cause, err))
	}
	if _, err := d.connect(opts); err != nil {
		return wrap("read", d.key, errors.Join(cause, err))
	}
	return nil
}

// Close implements io.Closer.
func (d *download) Close() error {
	defer d.give(nil)
	return d.body.Close()
}
