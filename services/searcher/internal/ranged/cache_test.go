package ranged

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tb is the part of *testing.T and *rapid.T that the tests use.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// source is a bucket whose ranged reads a test can break.
type source struct {
	bucket.Bucket
	reads, bytes atomic.Int64
	// broken changes what a read returns; nil changes nothing.
	broken atomic.Pointer[func(ctx context.Context, r io.ReadCloser) (io.ReadCloser, error)]
}

func (s *source) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	s.reads.Add(1)
	s.bytes.Add(n)
	r, err := s.Bucket.GetRange(ctx, key, off, n)
	if broken := s.broken.Load(); broken != nil && err == nil {
		return (*broken)(ctx, r)
	}
	return r, err
}

func (s *source) breakBy(f func(ctx context.Context, r io.ReadCloser) (io.ReadCloser, error)) {
	if f == nil {
		s.broken.Store(nil)
		return
	}
	s.broken.Store(&f)
}

// world is a cache over a bucket.
type world struct {
	*Cache
	source *source
	budget *disk.Budget
	dir    string
}

func newWorld(t tb, dir string, limit, grain int64) *world {
	t.Helper()
	m := NewMetrics(prometheus.NewRegistry())
	w := &world{source: &source{Bucket: bucket.NewMemory(1 << 30)}, budget: disk.NewBudget(limit), dir: dir}
	w.Cache = New(dir, w.source, w.budget, slog.New(slog.DiscardHandler), m)
	w.grain = grain
	return w
}

// put makes an object of the bucket.
func (w *world) put(t tb, key string, content []byte) Object {
	t.Helper()
	must(t, w.source.Put(context.Background(), key, bytes.NewReader(content), bucket.PutOptions{Size: int64(len(content))}))
	return Object{Name: key, Key: key, Size: int64(len(content))}
}

func noise(rng *rand.Rand, n int) []byte {
	p := make([]byte, 0, n+8)
	for len(p) < n {
		p = binary.LittleEndian.AppendUint64(p, rng.Uint64())
	}
	return p[:n]
}

// checkRoom checks the account while no flight is under way.
func checkRoom(t tb, w *world) {
	t.Helper()
	used := w.budget.Used()
	if limit := w.budget.Limit(); used < 0 || used > limit {
		t.Fatalf("%d bytes are taken of a budget of %d", used, limit)
	}
	taken, err := disk.Taken(w.dir)
	must(t, err)
	if taken > used {
		t.Fatalf("%d bytes are on disk, %d are accounted for", taken, used)
	}
}

// settle waits for flights that nobody waits for. No search may be running.
func (w *world) settle() { w.flights.Wait() }

// openNoise makes an object of noise, of which the last page is the tail and in place.
func (w *world) openNoise(t tb, key string, content []byte) *object {
	t.Helper()
	o := newObject(w.grain, w.put(t, key, content))
	if len(o.slots) > 1 {
		o.tail = uint32(len(o.slots)) // everything is kept
	}
	return o
}

// shut ends the use of an object.
func (w *world) shut(o *object) { w.leave(o) }

// readRandomly announces random ranges and reads one, which must be what the object has.
func readRandomly(ctx context.Context, v *view, whole []byte, rng *rand.Rand) error {
	part := func() (off, n int64) {
		off = rng.Int64N(int64(len(whole)))
		return off, 1 + rng.Int64N(min(50_000, int64(len(whole))-off))
	}
	for range rng.IntN(3) {
		v.soon(part()) // which it may read or not
	}
	off, n := part()
	p := make([]byte, n)
	if err := v.read(ctx, p, off); err != nil {
		return err
	}
	if !bytes.Equal(p, whole[off:off+n]) {
		return fmt.Errorf("%d bytes at %d are not those of the object", n, off)
	}
	return nil
}

// TestNeverOverBudgetNorWrong: random searches at random of several objects. At every step no more is taken than the budget
// has, no more is on disk than is taken, and what a view reads is what the object has.
func TestNeverOverBudgetNorWrong(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		limit := int64(rapid.IntRange(1, 80).Draw(t, "pages")) * disk.Page
		w := newWorld(t, dir, limit, 2*disk.Page)
		defer w.Close()
		var open []*object
		contents := make(map[*object][]byte)
		for i := range 3 {
			content := noise(rng, 1+rng.IntN(150_000))
			o := w.openNoise(t, fmt.Sprint("shard", i), content)
			open, contents[o] = append(open, o), content
		}
		var views []*view
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rng.IntN(5) {
			case 0:
				views = append(views, w.view(open[rng.IntN(len(open))]))
			case 1:
				if len(views) > 0 {
					i := rng.IntN(len(views))
					views[i].close()
					views = append(views[:i], views[i+1:]...)
				}
			case 2:
				if n := rng.Int64N(limit); w.Reserve(n) {
					w.budget.Give(n)
				}
			default:
				if len(views) > 0 {
					v := views[rng.IntN(len(views))]
					must(t, readRandomly(context.Background(), v, contents[v.object], rng))
				}
			}
			w.settle()
			checkRoom(t, w)
		}
		for _, v := range views {
			v.close()
		}
		for _, o := range open {
			w.shut(o)
		}
		if left := w.budget.Used(); left != 0 {
			t.Fatalf("%d bytes are still taken when all is closed", left)
		}
		checkRoom(t, w)
	})
}

// TestManySearches: many searches at once of several objects read what these have, while blocks are evicted under them. The account is
// checked meanwhile.
func TestManySearches(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	w := newWorld(t, t.TempDir(), 200_000, 4*disk.Page)
	defer w.Close()
	var open []*object
	var contents [][]byte
	for i := range 4 {
		contents = append(contents, noise(rng, 500_000))
		open = append(open, w.openNoise(t, fmt.Sprint("shard", i), contents[i]))
	}
	stop, watching := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watching)
		for {
			select {
			case <-stop:
				return
			default:
				if used := w.budget.Used(); used < 0 || used > w.budget.Limit() {
					t.Errorf("%d bytes are taken of %d", used, w.budget.Limit())
					return
				}
				runtime.Gosched()
			}
		}
	}()
	var searching sync.WaitGroup
	for g := range 8 {
		searching.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 5))
			for range 6 {
				i := rng.IntN(len(open))
				v := w.view(open[i])
				for range 40 {
					if err := readRandomly(t.Context(), v, contents[i], rng); err != nil {
						t.Error(err)
					}
				}
				v.close()
			}
		})
	}
	searching.Wait()
	close(stop)
	<-watching
	w.settle()
	for _, o := range open {
		w.shut(o)
	}
	if left := w.budget.Used(); left != 0 {
		t.Errorf("%d bytes are still taken", left)
	}
}
