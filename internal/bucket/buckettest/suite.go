// Package buckettest holds the acceptance suite of every bucket.Bucket, a real S3
// server to run it on, and a bucket that fails on demand.
package buckettest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trawl-search/trawl/internal/bucket"
)

// Limit is the size limit, in bytes, of the buckets given to Run. It is large enough
// that S3 uploads in parts.
const Limit = 17<<20 + 12345

// Run checks buckets against the promises of bucket.Bucket. The function makes an
// empty one for each part.
func Run(t *testing.T, newBucket func(t *testing.T) bucket.Bucket) {
	for name, test := range map[string]func(*testing.T, bucket.Bucket){
		"round trip":         testRoundTrip,
		"large":              testLarge,
		"range":              testRange,
		"absent":             testAbsent,
		"if absent":          testIfAbsent,
		"if absent, large":   testIfAbsentLarge,
		"if absent, at once": testIfAbsentAtOnce,
		"replace":            testReplace,
		"wrong content":      testWrongContent,
		"failing source":     testFailingSource,
		"too large":          testTooLarge,
		"keys":               testKeys,
		"list":               testList,
		"list, many":         testListMany,
		"delete":             testDelete,
		"cancelled":          testCancelled,
	} {
		t.Run(name, func(t *testing.T) { test(t, newBucket(t)) })
	}
}

// Content is n bytes that look random, the same for the same seed.
func Content(seed uint64, n int) []byte {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	out := make([]byte, n)
	rand.NewChaCha8(key).Read(out)
	return out
}

// Put stores a content under its size and digest.
func Put(t *testing.T, b bucket.Bucket, key string, content []byte) {
	t.Helper()
	if err := b.Put(t.Context(), key, bytes.NewReader(content), optionsOf(content)); err != nil {
		t.Fatal(err)
	}
}

func optionsOf(content []byte) bucket.PutOptions {
	return bucket.PutOptions{Size: int64(len(content)), SHA256: sha256.Sum256(content)}
}

func ifAbsent(content []byte) bucket.PutOptions {
	opts := optionsOf(content)
	opts.IfAbsent = true
	return opts
}

// Want fails the test unless the key holds the content.
func Want(t *testing.T, b bucket.Bucket, key string, content []byte) {
	t.Helper()
	r, info, err := b.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(r)
	if err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%s: read %d bytes, error %v; want the %d bytes put", key, len(got), err, len(content))
	}
	stat, err := b.Stat(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []bucket.Info{info, stat} {
		if i.Key != key || i.Size != int64(len(content)) || time.Since(i.ModTime).Abs() > 24*time.Hour {
			t.Errorf("info %+v, want key %s, size %d and a time near now", i, key, len(content))
		}
	}
}

func readAll(r io.ReadCloser) ([]byte, error) {
	got, err := io.ReadAll(r)
	return got, errors.Join(err, r.Close())
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	var located *bucket.Error
	if !errors.Is(err, want) || !errors.As(err, &located) {
		t.Errorf("%s: error %v, want a *bucket.Error of %q", what, err, want)
	}
}

func wantAbsent(t *testing.T, b bucket.Bucket, key string) {
	t.Helper()
	_, err := b.Stat(t.Context(), key)
	wantError(t, "stat of "+key, err, bucket.ErrNotFound)
	_, _, err = b.Get(t.Context(), key)
	wantError(t, "get of "+key, err, bucket.ErrNotFound)
	_, err = b.GetRange(t.Context(), key, 0, 1)
	wantError(t, "get of a range of "+key, err, bucket.ErrNotFound)
}

// keys lists the keys under a prefix.
func keys(t *testing.T, b bucket.Bucket, prefix string) []string {
	t.Helper()
	var list []string
	for info, err := range b.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, info.Key)
	}
	return list
}

func wantKeys(t *testing.T, b bucket.Bucket, prefix string, want ...string) {
	t.Helper()
	if got := keys(t, b, prefix); !slices.Equal(got, want) {
		t.Errorf("list of %q: %q, want %q", prefix, got, want)
	}
}

func testRoundTrip(t *testing.T, b bucket.Bucket) {
	for i, n := range []int{0, 1, 4096, 100_000} {
		key := fmt.Sprintf("shards/%d", i)
		content := Content(uint64(i), n)
		Put(t, b, key, content)
		Want(t, b, key, content)
	}
	// Without a digest none is checked, and a source may give its bytes one by one and
	// its end with the last.
	content := Content(9, 777)
	for i, r := range []io.Reader{iotest.OneByteReader(bytes.NewReader(content)), iotest.DataErrReader(bytes.NewReader(content))} {
		key := fmt.Sprintf("odd/%d", i)
		if err := b.Put(t.Context(), key, r, bucket.PutOptions{Size: 777}); err != nil {
			t.Fatal(err)
		}
		Want(t, b, key, content)
	}
}

func testLarge(t *testing.T, b bucket.Bucket) {
	content := Content(1, Limit)
	Put(t, b, "shards/large", content)
	Want(t, b, "shards/large", content)
	wrong := optionsOf(content)
	wrong.SHA256[3]++
	wantError(t, "wrong digest", b.Put(t.Context(), "shards/wrong", bytes.NewReader(content), wrong), bucket.ErrChecksum)
	wantAbsent(t, b, "shards/wrong")
}

func testRange(t *testing.T, b bucket.Bucket) {
	content := Content(2, 1000)
	Put(t, b, "a", content)
	Put(t, b, "empty", nil)
	for _, c := range []struct{ off, n, end int64 }{
		{0, 1, 1}, {0, 1000, 1000}, {0, 5000, 1000}, {999, 1, 1000}, {999, 10, 1000}, {300, 200, 500}, {1, 1<<63 - 2, 1000},
	} {
		r, err := b.GetRange(t.Context(), "a", c.off, c.n)
		if err != nil {
			t.Fatalf("range %+v: %v", c, err)
		}
		if got, err := readAll(r); err != nil || !bytes.Equal(got, content[c.off:c.end]) {
			t.Errorf("range %+v: %d bytes, error %v; want %d bytes", c, len(got), err, c.end-c.off)
		}
	}
	for _, c := range []struct{ off, n int64 }{{1000, 1}, {5000, 1}, {-1, 1}, {0, 0}, {0, -1}, {1<<63 - 1, 1<<63 - 1}} {
		_, err := b.GetRange(t.Context(), "a", c.off, c.n)
		wantError(t, fmt.Sprintf("range %+v", c), err, bucket.ErrRange)
	}
	_, err := b.GetRange(t.Context(), "empty", 0, 1)
	wantError(t, "range of nothing", err, bucket.ErrRange)
}

func testAbsent(t *testing.T, b bucket.Bucket) {
	wantAbsent(t, b, "a")
	wantAbsent(t, b, "a/b/c")
	Put(t, b, "a/b/c", []byte("x"))
	wantAbsent(t, b, "a")
	wantAbsent(t, b, "a/b")
	wantAbsent(t, b, "a/b/c/d")
}

func testIfAbsent(t *testing.T, b bucket.Bucket) {
	first, second := Content(3, 300), Content(4, 400)
	if err := b.Put(t.Context(), "a/b", bytes.NewReader(first), ifAbsent(first)); err != nil {
		t.Fatal(err)
	}
	wantError(t, "second put", b.Put(t.Context(), "a/b", bytes.NewReader(second), ifAbsent(second)), bucket.ErrExists)
	Want(t, b, "a/b", first)
}

// testIfAbsentLarge: another object appears during a large upload. The condition must
// hold at its end, not only at its beginning.
func testIfAbsentLarge(t *testing.T, b bucket.Bucket) {
	large, small := Content(5, Limit), Content(6, 60)
	source := &interrupted{r: bytes.NewReader(large), after: Limit / 2, do: func() { Put(t, b, "a/b", small) }}
	wantError(t, "put", b.Put(t.Context(), "a/b", source, ifAbsent(large)), bucket.ErrExists)
	Want(t, b, "a/b", small)
}

// interrupted calls a function once while it is read.
type interrupted struct {
	r     io.Reader
	after int
	do    func()
}

// Read implements io.Reader.
func (i *interrupted) Read(p []byte) (int, error) {
	n, err := i.r.Read(p)
	if i.after -= n; i.after <= 0 && i.do != nil {
		i.do()
		i.do = nil
	}
	return n, err
}

func testIfAbsentAtOnce(t *testing.T, b bucket.Bucket) {
	const writers = 8
	var won atomic.Int64
	var winner atomic.Int64
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			content := Content(uint64(w), 5000)
			switch err := b.Put(t.Context(), "race/key", bytes.NewReader(content), ifAbsent(content)); {
			case err == nil:
				won.Add(1)
				winner.Store(int64(w))
			case !errors.Is(err, bucket.ErrExists):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d of %d puts won, want one", won.Load(), writers)
	}
	Want(t, b, "race/key", Content(uint64(winner.Load()), 5000))
}

func testReplace(t *testing.T, b bucket.Bucket) {
	first, second := Content(1, 50_000), Content(2, 20_000)
	Put(t, b, "a", first)
	r, _, err := b.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 100)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	Put(t, b, "a", second)
	if rest, err := readAll(r); err == nil && !bytes.Equal(append(head, rest...), first) {
		t.Error("a reader that was open gave a mix of the old object and the new")
	}
	Want(t, b, "a", second)
}

func testWrongContent(t *testing.T, b bucket.Bucket) {
	content := Content(7, 10_000)
	good := optionsOf(content)
	short, long, digest := good, good, good
	short.Size--
	long.Size++
	digest.SHA256[31]++
	for _, c := range []struct {
		what string
		opts bucket.PutOptions
		want error
	}{
		{"more than announced", short, bucket.ErrSize},
		{"less than announced", long, bucket.ErrSize},
		{"wrong digest", digest, bucket.ErrChecksum},
		{"negative size", bucket.PutOptions{Size: -1}, bucket.ErrSize},
		{"more than nothing", bucket.PutOptions{}, bucket.ErrSize},
	} {
		wantError(t, c.what, b.Put(t.Context(), "new/key", bytes.NewReader(content), c.opts), c.want)
	}
	wantAbsent(t, b, "new/key")
	wantKeys(t, b, "")

	Put(t, b, "old/key", content)
	wantError(t, "replacing by a wrong one", b.Put(t.Context(), "old/key", bytes.NewReader(content), digest), bucket.ErrChecksum)
	Want(t, b, "old/key", content)
}

func testFailingSource(t *testing.T, b bucket.Bucket) {
	broken := errors.New("the source broke")
	for _, n := range []int{0, 5000, Limit - 5000} {
		r := io.MultiReader(bytes.NewReader(Content(8, n)), iotest.ErrReader(broken))
		wantError(t, "put", b.Put(t.Context(), "a", r, bucket.PutOptions{Size: int64(n) + 5000}), broken)
		// The same if only the end is missing.
		r = io.MultiReader(bytes.NewReader(Content(8, n)), iotest.ErrReader(broken))
		wantError(t, "put", b.Put(t.Context(), "a", r, bucket.PutOptions{Size: int64(n)}), broken)
	}
	wantAbsent(t, b, "a")
}

func testTooLarge(t *testing.T, b bucket.Bucket) {
	err := b.Put(t.Context(), "a", iotest.ErrReader(errors.New("must not be read")), bucket.PutOptions{Size: Limit + 1})
	wantError(t, "put", err, bucket.ErrTooLarge)
	wantAbsent(t, b, "a")
}

func testKeys(t *testing.T, b bucket.Bucket) {
	segment := strings.Repeat("s", 200)
	for _, key := range []string{"a", "0", "a.b", "a..", "shards/00ff.trawl", "k=v/x-y_z", "deep/er/and/deep/er", segment, "two/" + segment + "/" + segment} {
		Put(t, b, key, []byte(key))
		Want(t, b, key, []byte(key))
	}
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", ".tmp/a", "a/.b", `a\b`, "A", "ä", "a b", "a\x00b", "a\nb", "a%2fb", "a:b", "~a",
		segment + "s", strings.Repeat("a/", 256) + "a",
	} {
		err := b.Put(t.Context(), key, strings.NewReader("x"), bucket.PutOptions{Size: 1})
		wantError(t, "put of "+key, err, bucket.ErrKey)
		_, _, err = b.Get(t.Context(), key)
		wantError(t, "get of "+key, err, bucket.ErrKey)
		_, err = b.GetRange(t.Context(), key, 0, 1)
		wantError(t, "get of a range of "+key, err, bucket.ErrKey)
		_, err = b.Stat(t.Context(), key)
		wantError(t, "stat of "+key, err, bucket.ErrKey)
		wantError(t, "delete of "+key, b.Delete(t.Context(), key), bucket.ErrKey)
	}
	for _, prefix := range []string{"/", "../", "a//", ".t", "A"} {
		for _, err := range b.List(t.Context(), prefix) {
			wantError(t, "list of "+prefix, err, bucket.ErrKey)
		}
	}
}

func testList(t *testing.T, b bucket.Bucket) {
	wantKeys(t, b, "")
	wantKeys(t, b, "nothing/here/")
	all := []string{"a-b/x", "a.b", "a/b", "a/c/d", "a0", "b/1", "b/10", "b/2"} // in byte order: '-' < '.' < '/' < '0'
	for i := range all {
		key := all[(i*5)%len(all)]
		Put(t, b, key, Content(0, len(key)))
	}
	wantKeys(t, b, "", all...)
	wantKeys(t, b, "a", "a-b/x", "a.b", "a/b", "a/c/d", "a0")
	wantKeys(t, b, "a/", "a/b", "a/c/d")
	wantKeys(t, b, "a/c", "a/c/d")
	wantKeys(t, b, "a/c/d", "a/c/d")
	wantKeys(t, b, "a.b/")
	wantKeys(t, b, "b/1", "b/1", "b/10")
	wantKeys(t, b, "c")
	for info, err := range b.List(t.Context(), "b/") {
		if err != nil || info.Size != int64(len(info.Key)) || time.Since(info.ModTime).Abs() > 24*time.Hour {
			t.Errorf("listed %+v, error %v", info, err)
		}
	}
	for range b.List(t.Context(), "") {
		break // an iteration can end early
	}
}

// testListMany lists more than one page of a store.
func testListMany(t *testing.T, b bucket.Bucket) {
	const n = 1005
	var want []string
	var group errgroup.Group
	group.SetLimit(8)
	for i := range n {
		key := fmt.Sprintf("many/%04d", i)
		want = append(want, key)
		group.Go(func() error { return b.Put(t.Context(), key, strings.NewReader("x"), bucket.PutOptions{Size: 1}) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, b, "many/", want...)
}

func testDelete(t *testing.T, b bucket.Bucket) {
	Put(t, b, "a/b", []byte("x"))
	Put(t, b, "a/c", []byte("y"))
	for range 2 {
		if err := b.Delete(t.Context(), "a/b"); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"never/there", "a"} {
		if err := b.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	wantAbsent(t, b, "a/b")
	wantKeys(t, b, "", "a/c")
	Put(t, b, "a/b", []byte("z"))
	Want(t, b, "a/b", []byte("z"))
}

func testCancelled(t *testing.T, b bucket.Bucket) {
	Put(t, b, "a", Content(1, 1<<20))
	ctx, cancel := context.WithCancel(t.Context())
	r, _, err := b.Get(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := readAll(r); !errors.Is(err, context.Canceled) {
		t.Errorf("reading on after the context ended: %v", err)
	}
	wantError(t, "put", b.Put(ctx, "b", strings.NewReader("x"), bucket.PutOptions{Size: 1}), context.Canceled)
	_, _, err = b.Get(ctx, "a")
	wantError(t, "get", err, context.Canceled)
	_, err = b.GetRange(ctx, "a", 0, 1)
	wantError(t, "get of a range", err, context.Canceled)
	_, err = b.Stat(ctx, "a")
	wantError(t, "stat", err, context.Canceled)
	wantError(t, "delete", b.Delete(ctx, "a"), context.Canceled)
	for _, err := range b.List(ctx, "") {
		wantError(t, "list", err, context.Canceled)
	}
	wantAbsent(t, b, "b")
	Want(t, b, "a", Content(1, 1<<20))
}
