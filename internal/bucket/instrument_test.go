package bucket_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/bucket/buckettest"
)

func TestInstrumentedIsABucket(t *testing.T) {
	buckettest.Run(t, func(t *testing.T) bucket.Bucket {
		b, err := bucket.Instrument(bucket.NewMemory(buckettest.Limit), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

// noAnswer is the error of a request to a store that accepts connections and never
// answers.
func noAnswer(t *testing.T) error {
	t.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	hasty := http.Client{Transport: &http.Transport{ResponseHeaderTimeout: time.Millisecond}}
	resp, err := hasty.Get("http://" + silent.Addr().String())
	if err == nil {
		resp.Body.Close()
		t.Fatal("an answer")
	}
	return err
}

func TestInstrument(t *testing.T) {
	registry := prometheus.NewRegistry()
	var fault error
	faulty := &buckettest.Faulty{Bucket: openFolder(t, t.TempDir()), Fault: func(context.Context, string, string) error { return fault }}
	b, err := bucket.Instrument(faulty, registry)
	if err != nil {
		t.Fatal(err)
	}
	buckettest.Put(t, b, "a", make([]byte, 100))
	buckettest.Want(t, b, "a", make([]byte, 100)) // a get and a stat
	if err := b.Put(t.Context(), "a", strings.NewReader("x"), bucket.PutOptions{Size: 1, IfAbsent: true}); !errors.Is(err, bucket.ErrExists) {
		t.Error(err)
	}
	if _, _, err := b.Get(t.Context(), "b"); !errors.Is(err, bucket.ErrNotFound) {
		t.Error(err)
	}
	r, err := b.GetRange(t.Context(), "a", 10, 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil { // nothing is read
		t.Error(err)
	}
	fault = errors.New("broken")
	for range b.List(t.Context(), "") {
	}
	fault = context.Canceled
	if err := b.Delete(t.Context(), "a"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	fault = noAnswer(t)
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, ctx := range []context.Context{t.Context(), late} {
		if _, err := b.Stat(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	const want = `# HELP trawl_bucket_bytes_total Bytes of objects read and written.
# TYPE trawl_bucket_bytes_total counter
trawl_bucket_bytes_total{direction="read"} 100
trawl_bucket_bytes_total{direction="written"} 100
# HELP trawl_bucket_calls_total Calls of the object store, by method and outcome.
# TYPE trawl_bucket_calls_total counter
trawl_bucket_calls_total{op="delete",outcome="canceled"} 1
trawl_bucket_calls_total{op="get",outcome="not_found"} 1
trawl_bucket_calls_total{op="get",outcome="ok"} 1
trawl_bucket_calls_total{op="get_range",outcome="ok"} 1
trawl_bucket_calls_total{op="list",outcome="error"} 1
trawl_bucket_calls_total{op="put",outcome="exists"} 1
trawl_bucket_calls_total{op="put",outcome="ok"} 1
trawl_bucket_calls_total{op="stat",outcome="canceled"} 1
trawl_bucket_calls_total{op="stat",outcome="error"} 1
trawl_bucket_calls_total{op="stat",outcome="ok"} 1
`
	got := gathered(t, registry)
	if happened := strings.Join(slices.DeleteFunc(strings.SplitAfter(got, "\n"), func(line string) bool {
		return strings.HasSuffix(line, " 0\n") // present before the first event
	}), ""); happened != want {
		t.Errorf("metrics\n%s\nwant\n%s", happened, want)
	}
	if !strings.Contains(got, `{op="delete",outcome="error"} 0`) {
		t.Errorf("what has not happened yet is not there:\n%s", got)
	}
	if _, err := bucket.Instrument(faulty, registry); err == nil {
		t.Error("the metrics were registered twice")
	}
	if err := bucket.Close(b); err != nil { // the wrapper passes it on to Faulty, which has no Close
		t.Error(err)
	}
}

// gathered are the metrics as text, without durations.
func gathered(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, f := range families {
		if f.GetName() == "trawl_bucket_call_seconds" {
			if n := len(f.GetMetric()); n != 6 {
				t.Errorf("durations of %d methods, want 6", n)
			}
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&got, f); err != nil {
			t.Error(err)
		}
	}
	return got.String()
}
