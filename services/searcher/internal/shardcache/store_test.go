package shardcache_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened stands for an open shard: what its file held.
type opened struct {
	content string
	closed  atomic.Bool
}

func (o *opened) Find(context.Context, *search.Query, search.Options) (*search.Found, error) {
	return &search.Found{}, nil
}

func (o *opened) Show(context.Context, *search.Found, int) (*search.Result, error) {
	return &search.Result{}, nil
}

func (o *opened) Count(context.Context, *search.Query, search.Options, []search.Facet) (*search.Counted, error) {
	return nil, nil
}

func (o *opened) List(context.Context, *search.Query, search.ListOptions) (*search.ListResult, error) {
	return &search.ListResult{}, nil
}

func (o *opened) Tree(context.Context, string, search.Options, search.TreeOptions) (*search.Tree, error) {
	panic("not called")
}

func (o *opened) File(context.Context, string, []byte, string, search.Options, search.Part) (*search.File, error) {
	return nil, search.ErrNoFile
}

func (o *opened) Close() error {
	if o.closed.Swap(true) {
		return errors.New("closed twice")
	}
	return nil
}

// open takes every file for a shard unless it begins with "bad".
func open(path string) (shardcache.Shard, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(string(content), "bad") {
		return nil, &format.CorruptError{File: path, Section: "footer", Reason: "test"}
	}
	return &opened{content: string(content)}, nil
}

// world is a store with its bucket, running.
type world struct {
	*shardcache.Store
	t      *testing.T
	bucket bucket.Bucket
	dir    string
}

// refOf is the reference of an object with this content; it need not exist.
func refOf(content string) shardcache.Ref {
	sum := sha256.Sum256([]byte(content))
	d := searchapi.Digest(sum)
	return shardcache.Ref{Digest: d, Key: "shards/" + d.String() + ".trawl", Size: int64(len(content))}
}

func (w *world) put(content string) shardcache.Ref {
	w.t.Helper()
	ref := refOf(content)
	w.putAs(ref, content)
	return ref
}

func (w *world) putAs(ref shardcache.Ref, content string) {
	w.t.Helper()
	err := w.bucket.Put(w.t.Context(), ref.Key, strings.NewReader(content), bucket.PutOptions{Size: int64(len(content))})
	if err != nil {
		w.t.Fatal(err)
	}
}

// run starts a store over dir; it ends with the test, or by the function returned.
func run(t *testing.T, dir string, b bucket.Bucket) (*world, func()) {
	t.Helper()
	m := shardcache.NewMetrics(prometheus.NewRegistry())
	cfg := shardcache.Config{Dir: dir, Loads: 2, Grace: time.Minute, Retry: 10 * time.Millisecond}
	s, err := shardcache.New(cfg, b, open, slog.New(slog.DiscardHandler), m)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	stop := sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return &world{Store: s, t: t, bucket: b, dir: dir}, stop
}

func start(t *testing.T) *world {
	t.Helper()
	w, _ := run(t, t.TempDir(), bucket.NewMemory(1<<20))
	return w
}

// later is after the end of every test.
func later() time.Time { return time.Now().Add(time.Hour) }

// acquire waits for a shard.
func (w *world) acquire(ref shardcache.Ref) (h *shardcache.Handle) {
	w.t.Helper()
	testrun.Eventually(w.t, "a shard is there", func(ctx context.Context) (err error) {
		h, err = w.Acquire(ctx, ref.Digest, later())
		return err
	})
	return h
}

func content(h *shardcache.Handle) string { return h.Shard.(*opened).content }

func TestServesWhatIsWanted(t *testing.T) {
	w := start(t)
	a, b := w.put("shard a"), w.put("shard b")
	if _, err := w.Acquire(t.Context(), a.Digest, later()); !errors.Is(err, shardcache.ErrNotCovered) {
		t.Fatalf("before it is wanted: %v", err)
	}
	w.Want(1, []shardcache.Ref{a, b})
	h, err := w.Acquire(t.Context(), a.Digest, later()) // waits for the load
	if err != nil || content(h) != "shard a" {
		t.Fatalf("%v, %v", h, err)
	}
	h.Release()
	if _, err := w.Acquire(t.Context(), refOf("other").Digest, later()); !errors.Is(err, shardcache.ErrNotCovered) {
		t.Errorf("a shard that is not placed here: %v", err)
	}
	w.acquire(b).Release()
	if c, _ := w.Counts(); c.Ready != 2 || !c.Settled() {
		t.Errorf("counts %+v", c)
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	dir, b := t.TempDir(), bucket.NewMemory(1<<20)
	m := shardcache.NewMetrics(prometheus.NewRegistry())
	s, err := shardcache.New(shardcache.Config{Dir: dir, Loads: 1}, b, open, slog.New(slog.DiscardHandler), m)
	if err != nil {
		t.Fatal(err)
	}
	s.Want(1, []shardcache.Ref{refOf("never loaded: the store does not run")})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	d := refOf("never loaded: the store does not run").Digest
	if _, err = s.Acquire(ctx, d, later()); !errors.Is(err, shardcache.ErrNotCovered) {
		t.Errorf("the call ended: %v", err)
	}
	if _, err = s.Acquire(t.Context(), d, time.Now().Add(10*time.Millisecond)); !errors.Is(err, shardcache.ErrNotCovered) {
		t.Errorf("the time to wait is over: %v", err)
	}
}

// TestObjectOfAnotherDigest: what arrives is verified, and never served.
func TestObjectOfAnotherDigest(t *testing.T) {
	w := start(t)
	for name, wrong := range map[string]string{"flipped": "shard B", "short": "shard", "long": "shard bb"} {
		ref := refOf("shard b")
		w.putAs(ref, wrong)
		w.Want(1, []shardcache.Ref{ref})
		_, err := w.Acquire(t.Context(), ref.Digest, later())
		if !errors.Is(err, shardcache.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if c, _ := w.Counts(); c.Failed != 1 || !c.Settled() || c.Reason == "" {
			t.Errorf("%s: counts %+v", name, c)
		}
		w.putAs(ref, "shard b") // repaired: the next try succeeds
		w.acquire(ref).Release()
		w.reset(ref)
	}
}

// reset makes a store that has forgotten everything.
func (w *world) reset(shardcache.Ref) {
	fresh, _ := run(w.t, w.t.TempDir(), w.bucket)
	w.Store, w.dir = fresh.Store, fresh.dir
}

// TestDamageFoundInUse is the life of a damaged shard. Its users continue, others get an error, the
// file is put aside, and a valid copy replaces it.
func TestDamageFoundInUse(t *testing.T) {
	w := start(t)
	ref := w.put("shard a")
	w.Want(1, []shardcache.Ref{ref})
	first, second := w.acquire(ref), w.acquire(ref)
	if err := os.WriteFile(w.file(ref), []byte("bad rd a"), 0o600); err != nil {
		t.Fatal(err)
	}
	damage := &format.CorruptError{File: "f", Section: "s", Reason: "r"}
	first.Corrupt(damage)
	second.Corrupt(damage) // the second to find it changes nothing
	if first.Shard.(*opened).closed.Load() {
		t.Error("closed while it is used")
	}
	again := w.acquire(ref)
	if content(again) != "shard a" || again.Shard == first.Shard {
		t.Errorf("came back as %q", content(again))
	}
	first.Release()
	if second.Shard.(*opened).closed.Load() {
		t.Error("closed before its last user left")
	}
	second.Release()
	if !second.Shard.(*opened).closed.Load() {
		t.Error("not closed after its last user left")
	}
	aside, err := os.ReadFile(filepath.Join(w.dir, "quarantine", ref.Digest.String()+".trawl"))
	if err != nil || string(aside) != "bad rd a" {
		t.Errorf("put aside: %q, %v", aside, err)
	}
	again.Release()
}

func (w *world) file(ref shardcache.Ref) string {
	return filepath.Join(w.dir, ref.Digest.String()+".trawl")
}

// TestDamageIsToldMeanwhile: while the bucket has no valid copy, users get the error that the shard
// is damaged.
func TestDamageIsToldMeanwhile(t *testing.T) {
	w := start(t)
	ref := w.put("shard a")
	w.Want(1, []shardcache.Ref{ref})
	h := w.acquire(ref)
	if err := w.bucket.Delete(t.Context(), ref.Key); err != nil {
		t.Fatal(err)
	}
	h.Corrupt(&format.CorruptError{File: "f", Section: "s", Reason: "r"})
	h.Release()
	if _, err := w.Acquire(t.Context(), ref.Digest, later()); !errors.Is(err, shardcache.ErrCorrupt) && !errors.Is(err, shardcache.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	w.putAs(ref, "shard a")
	w.acquire(ref).Release()
}

// TestRestart: complete files of an earlier run are used without the bucket,
// damaged and unfinished ones are not.
func TestRestart(t *testing.T) {
	dir, b := t.TempDir(), bucket.NewMemory(1<<20)
	w, stop := run(t, dir, b)
	kept, damaged, left := w.put("shard kept"), w.put("shard damaged"), w.put("shard left")
	w.Want(1, []shardcache.Ref{kept, damaged, left})
	for _, r := range []shardcache.Ref{kept, damaged, left} {
		w.acquire(r).Release()
	}
	stop()
	must(t, os.WriteFile(w.file(damaged), []byte("bad"+strings.Repeat("x", len("shard damaged")-3)), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, ".partial-123"), nil, 0o600))
	must(t, b.Delete(t.Context(), kept.Key))
	w, _ = run(t, dir, b)
	w.Want(1, []shardcache.Ref{kept, damaged})
	must(t, w.Prune())
	w.acquire(kept).Release()
	h := w.acquire(damaged)
	if content(h) != "shard damaged" {
		t.Errorf("served %q", content(h))
	}
	h.Release()
	for _, gone := range []string{w.file(left), filepath.Join(dir, ".partial-123")} {
		if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
}

var must = testrun.Must

// TestGrace: a shard that is no longer wanted is served for the grace time, and
// is closed and removed after it, but not while it is used.
func TestGrace(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := bucket.NewMemory(1 << 20)
		w, stop := run(t, dir, b)
		defer stop()
		ref, other := w.put("shard a"), w.put("shard b")
		w.Want(1, []shardcache.Ref{ref, other})
		used, unused := w.acquire(ref), w.acquire(other)
		unused.Release()
		w.Want(1, nil)
		time.Sleep(59 * time.Second)
		w.acquire(other).Release()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, err := w.Acquire(t.Context(), other.Digest, later()); !errors.Is(err, shardcache.ErrNotCovered) {
			t.Errorf("after the grace time: %v", err)
		}
		if !unused.Shard.(*opened).closed.Load() || used.Shard.(*opened).closed.Load() {
			t.Error("closed the used one, or not the unused one")
		}
		w.Want(1, []shardcache.Ref{ref}) // wanted again while the old one is still used
		w.acquire(ref).Release()
		used.Release()
		if !used.Shard.(*opened).closed.Load() {
			t.Error("the last user left and it is open")
		}
	})
}

// TestManyUsers lets uses, damage and changes of the wanted set happen at the same time. A shard is
// never used after it is closed, and all are closed in the end.
func TestManyUsers(t *testing.T) {
	w, stop := run(t, t.TempDir(), bucket.NewMemory(1<<20))
	var refs []shardcache.Ref
	for i := range 6 {
		refs = append(refs, w.put(fmt.Sprint("shard ", i)))
	}
	var seen sync.Map
	var users sync.WaitGroup
	for u := range 4 {
		users.Go(func() {
			for i := range 200 {
				ref := refs[(u+i)%len(refs)]
				switch i % 17 {
				case 0:
					w.Want(1, refs[i%3:])
					continue
				case 1:
					w.Want(1, refs)
					continue
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
				h, err := w.Acquire(ctx, ref.Digest, later())
				cancel()
				if err != nil {
					continue
				}
				seen.Store(h.Shard, true)
				if i%29 == 0 {
					h.Corrupt(&format.CorruptError{File: "f", Section: "s", Reason: "r"})
				}
				if h.Shard.(*opened).closed.Load() || !strings.HasPrefix(content(h), "shard ") {
					t.Error("used after it was closed")
				}
				h.Release()
			}
		})
	}
	users.Wait()
	stop()
	count := 0
	for sh := range seen.Range {
		count++
		if !sh.(*opened).closed.Load() {
			t.Error("left open")
		}
	}
	if count == 0 {
		t.Error("no shard was ever used")
	}
}
