package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// instrumented counts the calls of a bucket.
type instrumented struct {
	Bucket
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	bytes   *prometheus.CounterVec
}

// latencies are the bounds of the histogram, in seconds: from a local file to
// an upload of gigabytes.
var latencies = []float64{.0001, .001, .005, .025, .1, .5, 2.5, 10, 60, 300}

// Instrument returns the bucket with metrics: calls by method and outcome,
// their durations (of gets: until the first byte can be read), and the bytes of
// contents. An error means that the metrics are registered already.
func Instrument(b Bucket, r prometheus.Registerer) (Bucket, error) {
	i := &instrumented{
		Bucket: b,
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_bucket_calls_total", Help: "Calls of the object store, by method and outcome.",
		}, []string{"op", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_bucket_call_seconds", Help: "Duration of calls of the object store, by method.", Buckets: latencies,
		}, []string{"op"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_bucket_bytes_total", Help: "Bytes of objects read and written.",
		}, []string{"direction"}),
	}
	for _, c := range []prometheus.Collector{i.calls, i.seconds, i.bytes} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register the bucket's metrics: %w", err)
		}
	}
	i.present()
	return i, nil
}

// present makes all series, so that they exist before their first event.
func (i *instrumented) present() {
	for _, op := range []string{"put", "get", "get_range", "stat", "list", "delete"} {
		i.seconds.WithLabelValues(op)
		for _, outcome := range []string{"ok", "not_found", "exists", "canceled", "error"} {
			i.calls.WithLabelValues(op, outcome)
		}
	}
	for _, direction := range []string{"read", "written"} {
		i.bytes.WithLabelValues(direction)
	}
}

// Close implements io.Closer.
func (i *instrumented) Close() error { return Close(i.Bucket) }

// observe records a call that began at start and ended with err, when it is deferred.
func (i *instrumented) observe(ctx context.Context, op string, start time.Time, err *error) {
	i.calls.WithLabelValues(op, outcome(ctx, *err)).Inc()
	i.seconds.WithLabelValues(op).Observe(time.Since(start).Seconds())
}

// outcome classifies how a call ended. Results that callers expect are no errors. A
// store that does not answer is an error, although the error of a connection that
// timed out looks like a context's.
func outcome(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrNotFound):
		return "not_found"
	case errors.Is(err, ErrExists):
		return "exists"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		return "canceled"
	default:
		return "error"
	}
}

// Put implements Bucket.
func (i *instrumented) Put(ctx context.Context, key string, r io.Reader, opts PutOptions) (err error) {
	defer i.observe(ctx, "put", time.Now(), &err)
	if err = i.Bucket.Put(ctx, key, r, opts); err == nil {
		i.bytes.WithLabelValues("written").Add(float64(opts.Size))
	}
	return err
}

// Get implements Bucket.
func (i *instrumented) Get(ctx context.Context, key string) (r io.ReadCloser, info Info, err error) {
	defer i.observe(ctx, "get", time.Now(), &err)
	r, info, err = i.Bucket.Get(ctx, key)
	return i.counted(r), info, err
}

// GetRange implements Bucket.
func (i *instrumented) GetRange(ctx context.Context, key string, off, n int64) (r io.ReadCloser, err error) {
	defer i.observe(ctx, "get_range", time.Now(), &err)
	r, err = i.Bucket.GetRange(ctx, key, off, n)
	return i.counted(r), err
}

// Stat implements Bucket.
func (i *instrumented) Stat(ctx context.Context, key string) (info Info, err error) {
	defer i.observe(ctx, "stat", time.Now(), &err)
	return i.Bucket.Stat(ctx, key)
}

// List implements Bucket. Its duration is that of the whole iteration.
func (i *instrumented) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		var last error
		defer i.observe(ctx, "list", time.Now(), &last)
		for info, err := range i.Bucket.List(ctx, prefix) {
			if last = err; !yield(info, err) {
				return
			}
		}
	}
}

// Delete implements Bucket.
func (i *instrumented) Delete(ctx context.Context, key string) (err error) {
	defer i.observe(ctx, "delete", time.Now(), &err)
	return i.Bucket.Delete(ctx, key)
}

// counted counts the bytes that are read.
func (i *instrumented) counted(r io.ReadCloser) io.ReadCloser {
	if r == nil {
		return nil
	}
	return countedReader{r, i.bytes.WithLabelValues("read")}
}

type countedReader struct {
	io.ReadCloser
	bytes prometheus.Counter
}

// Read implements io.Reader.
func (c countedReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(float64(n))
	return n, err
}
