package bucket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/bucket/buckettest"
)

// open opens a bucket for one test.
func open(t *testing.T, cfg bucket.Config) bucket.Bucket {
	t.Helper()
	b, err := bucket.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bucket.Close(b); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestS3(t *testing.T) {
	server := buckettest.StartS3(t)
	made := 0
	suite := func(prefix string) func(*testing.T) {
		return func(t *testing.T) {
			buckettest.Run(t, func(t *testing.T) bucket.Bucket {
				made++
				cfg := server.Config(fmt.Sprintf("bucket-%d", made))
				cfg.MaxObjectBytes = buckettest.Limit
				cfg.URL = withPrefix(cfg.URL, prefix)
				return open(t, cfg)
			})
		}
	}
	t.Run("bucket", suite(""))
	t.Run("prefix", suite("/Some/Prefix"))
	t.Run("restart", func(t *testing.T) { testS3Restart(t, server) })
	t.Run("no bucket", func(t *testing.T) { testS3NoBucket(t, server) })
	t.Run("wrong key", func(t *testing.T) { testS3WrongKey(t, server) })
}

// withPrefix puts keys of an S3 URL below a prefix.
func withPrefix(raw, prefix string) string {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	u.Path = prefix
	return u.String()
}

// testS3Restart puts an object while the server restarts.
func testS3Restart(t *testing.T, server *buckettest.S3Server) {
	cfg := server.Config("restart")
	cfg.Attempts = 100
	patient := open(t, cfg)
	cfg.Attempts = 1
	impatient := open(t, cfg)
	buckettest.Put(t, patient, "before", []byte("x"))

	server.Stop()
	if bucket.Reachable(t.Context(), impatient) == nil {
		t.Error("the bucket is reachable while the server is away")
	}
	_, err := impatient.Stat(t.Context(), "before")
	if err == nil || errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("stat while the server is away: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := patient.Stat(ctx, "before"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stat with a deadline while the server is away: %v", err)
	}
	put := make(chan error)
	go func() {
		put <- patient.Put(t.Context(), "after", strings.NewReader("y"), bucket.PutOptions{Size: 1, IfAbsent: true})
	}()
	server.Start()
	if err := <-put; err != nil {
		t.Error(err)
	}
	buckettest.Want(t, patient, "before", []byte("x"))
	buckettest.Want(t, patient, "after", []byte("y"))
}

// testS3NoBucket: a missing bucket does not look like an empty one.
func testS3NoBucket(t *testing.T, server *buckettest.S3Server) {
	cfg := server.Config("is-here")
	cfg.URL = strings.Replace(cfg.URL, "is-here", "is-not-here", 1)
	b := open(t, cfg)
	if _, _, err := b.Get(t.Context(), "a"); err == nil || errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if err := b.Put(t.Context(), "a", strings.NewReader("x"), bucket.PutOptions{Size: 1}); err == nil {
		t.Error("an object was put into a bucket that is not there")
	}
	listed := false
	for _, err := range b.List(t.Context(), "") {
		if listed = true; err == nil {
			t.Error("an object is listed")
		}
	}
	if !listed {
		t.Error("the list is empty, without an error")
	}
	if err := bucket.Reachable(t.Context(), b); err == nil || !strings.Contains(err.Error(), "there is no bucket is-not-here") {
		t.Errorf("reachable: %v", err)
	}
	if err := bucket.Reachable(t.Context(), open(t, server.Config("is-there"))); err != nil {
		t.Error(err)
	}
}

func testS3WrongKey(t *testing.T, server *buckettest.S3Server) {
	cfg := server.Config("wrong-key")
	cfg.CredentialsFile = buckettest.Credentials(t, buckettest.AccessKey, "hunter2")
	err := open(t, cfg).Put(t.Context(), "a", strings.NewReader("x"), bucket.PutOptions{Size: 1})
	if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), buckettest.AccessKey) {
		t.Errorf("error %v: want one without the credentials", err)
	}
}

// unreliable is between a client and the server. It answers some requests with 503,
// cuts some downloads off and lets others stall.
type unreliable struct {
	refusals, cuts, stalls atomic.Int64 // how many are left
	// ignores: answers look like those of a server that ignores that a part is wanted. shifts: parts are said to be of another place.
	ignores, shifts atomic.Bool
	proxy           *httputil.ReverseProxy
}

// cutAfter is where a download breaks, in bytes.
const cutAfter = 30_000

// newUnreliable makes one in front of the endpoint of a bucket's URL and
// returns the URL through it.
func newUnreliable(t *testing.T, raw string) (*unreliable, string) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	target, err := url.Parse(query.Get("endpoint"))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	f := &unreliable{proxy: &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0),
	}}
	f.proxy.ModifyResponse = f.cut
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	query.Set("endpoint", server.URL)
	u.RawQuery = query.Encode()
	return f, u.String()
}

// ServeHTTP implements http.Handler.
func (f *unreliable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.refusals.Add(-1) >= 0 {
		http.Error(w, "come back later", http.StatusServiceUnavailable)
		return
	}
	f.proxy.ServeHTTP(w, r)
}

// cut lets a download break, or stall.
func (f *unreliable) cut(r *http.Response) error {
	if part := r.Header.Get("Content-Range"); part != "" && f.shifts.Load() {
		r.Header.Set("Content-Range", strings.Replace(part, "bytes ", "bytes 1", 1))
	}
	if r.StatusCode == http.StatusPartialContent && f.ignores.Load() {
		r.StatusCode, r.Status = http.StatusOK, "200 OK"
		r.Header.Del("Content-Range")
	}
	if r.Request.Method == http.MethodGet && r.ContentLength > cutAfter && f.stalls.Add(-1) >= 0 {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(r.Body, cutAfter), silence{r.Request.Context()}), r.Body}
		return nil
	}
	if r.Request.Method == http.MethodGet && r.ContentLength > cutAfter && f.cuts.Add(-1) >= 0 {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(r.Body, cutAfter), iotest.ErrReader(errors.New("cut"))), r.Body}
	}
	return nil
}

// silence sends nothing until its context ends.
type silence struct{ ctx context.Context }

// Read implements io.Reader.
func (s silence) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// TestS3StalledDownload: connections that stay open and bring nothing are given up,
// and the download goes on over others.
func TestS3StalledDownload(t *testing.T) {
	server := buckettest.StartS3(t)
	cfg := server.Config("stalls")
	fault, through := newUnreliable(t, cfg.URL)
	cfg.URL = through
	b := open(t, cfg)
	bucket.Impatient(b, 50*time.Millisecond)
	content := buckettest.Content(1, 200_000)
	buckettest.Put(t, b, "a", content)
	fault.stalls.Store(4)
	buckettest.Want(t, b, "a", content)
	if left := fault.stalls.Load(); left >= 0 {
		t.Errorf("%d downloads did not stall", left)
	}
	fault.stalls.Store(1)
	r, _, err := b.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("closing a download that stalls: %v", err)
	}
}

func TestS3OverABadConnection(t *testing.T) {
	server := buckettest.StartS3(t)
	cfg := server.Config("flaky")
	fault, through := newUnreliable(t, cfg.URL)
	cfg.URL = through
	b := open(t, cfg)
	content := buckettest.Content(1, 200_000)

	fault.refusals.Store(3)
	buckettest.Put(t, b, "a", content)
	if left := fault.refusals.Load(); left >= 0 {
		t.Errorf("%d refusals were not tried", left)
	}
	fault.cuts.Store(4)
	buckettest.Want(t, b, "a", content)
	if left := fault.cuts.Load(); left >= 0 {
		t.Errorf("%d cuts did not happen", left)
	}

	fault.cuts.Store(2)
	r, err := b.GetRange(t.Context(), "a", 1000, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content[1000:101_000]) {
		t.Errorf("range over a bad connection: %d bytes, error %v", len(got), err)
	}
	r.Close()
}

// TestS3IgnoredRange: another part of an object than was asked for, or all of it, is an error that says so, also when a
// download resumes. It is never taken for the part.
func TestS3IgnoredRange(t *testing.T) {
	server := buckettest.StartS3(t)
	cfg := server.Config("ignored")
	fault, through := newUnreliable(t, cfg.URL)
	cfg.URL = through
	b := open(t, cfg)
	buckettest.Put(t, b, "a", buckettest.Content(1, 200_000))
	for name, mode := range map[string]*atomic.Bool{"ignores": &fault.ignores, "shifts": &fault.shifts} {
		mode.Store(true)
		if r, err := b.GetRange(t.Context(), "a", 1000, 2000); err == nil || !strings.Contains(err.Error(), "bytes 1000-2999") {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		fault.cuts.Store(1)
		r, _, err := b.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "-199999") {
			t.Errorf("%s: resuming: %d bytes, %v", name, len(got), err)
		}
		r.Close()
		mode.Store(false)
	}
	r, err := b.GetRange(t.Context(), "a", 199_990, 2000)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, buckettest.Content(1, 200_000)[199_990:]) {
		t.Errorf("the end of it: %d bytes, %v", len(got), err)
	}
	r.Close()
}

// TestS3ReplacedDuringDownload breaks a download and replaces the object before
// it can go on: the rest of the new one must not be appended to the old.
func TestS3ReplacedDuringDownload(t *testing.T) {
	server := buckettest.StartS3(t)
	cfg := server.Config("replaced")
	fault, through := newUnreliable(t, cfg.URL)
	direct := open(t, cfg)
	cfg.URL = through
	b := open(t, cfg)
	buckettest.Put(t, direct, "a", buckettest.Content(1, 200_000))
	fault.cuts.Store(1)
	r, _, err := b.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	buckettest.Put(t, direct, "a", buckettest.Content(2, 200_000))
	if got, err := io.ReadAll(r); err == nil {
		t.Errorf("read %d bytes of two objects without an error", len(got))
	}
}

// TestS3LeavesNoParts makes large uploads fail in every way that a caller can cause:
// the store must not keep their parts.
func TestS3LeavesNoParts(t *testing.T) {
	server := buckettest.StartS3(t)
	cfg := server.Config("parts")
	b := open(t, cfg)
	content := buckettest.Content(1, buckettest.Limit)
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		what   string
		source io.Reader
	}{
		{"broken source", io.MultiReader(bytes.NewReader(content[:buckettest.Limit-10]), iotest.ErrReader(errors.New("broken")))},
		{"wrong digest", bytes.NewReader(content)},
		{"cancelled", io.MultiReader(bytes.NewReader(content[:buckettest.Limit-10]), ending{cancel}, bytes.NewReader(content[buckettest.Limit-10:]))},
	} {
		if err := b.Put(ctx, "a", c.source, bucket.PutOptions{Size: buckettest.Limit, SHA256: [32]byte{1}}); err == nil {
			t.Errorf("%s: the object was put", c.what)
		}
	}
	u, err := url.Parse(cfg.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	core, err := minio.NewCore(strings.TrimPrefix(u.Query().Get("endpoint"), "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(buckettest.AccessKey, buckettest.SecretKey, ""), Region: "us-east-1", Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	left, err := core.ListMultipartUploads(t.Context(), "parts", "", "", "", "", 100)
	if err != nil || len(left.Uploads) > 0 {
		t.Errorf("uploads left: %+v, error %v", left.Uploads, err)
	}
}

// ending cancels a context when it is read, and has no content.
type ending struct{ cancel func() }

// Read implements io.Reader.
func (e ending) Read([]byte) (int, error) {
	e.cancel()
	return 0, io.EOF
}
