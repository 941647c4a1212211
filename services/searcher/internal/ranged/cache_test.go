package ranged

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
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
	reads atomic.Int64
	// broken changes what a read returns; nil changes nothing.
	broken atomic.Pointer[func(ctx context.Context, r io.ReadCloser) (io.ReadCloser, error)]
}

func (s *source) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	s.reads.Add(1)
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
	w.Cache = New(dir, w.source, w.budget, func() bool { return false }, slog.New(slog.DiscardHandler), m)
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

// used is a view with what it has read.
type used struct {
	*view
	whole  []byte
	ranges [][2]int64
}

// sound reports whether all that the view has read is still what the object has.
func (u *used) sound() error {
	for _, r := range u.ranges {
		if !bytes.Equal(u.object.data[r[0]:r[1]], u.whole[r[0]:r[1]]) {
			return fmt.Errorf("bytes %d to %d changed while they were in use", r[0], r[1])
		}
	}
	return nil
}

// read announces random ranges and fills one.
func (u *used) read(ctx context.Context, rng *rand.Rand) error {
	part := func() (off, n int64) {
		off = rng.Int64N(int64(len(u.whole)))
		return off, 1 + rng.Int64N(min(50_000, int64(len(u.whole))-off))
	}
	for range rng.IntN(3) {
		u.soon(part()) // which it may read or not
	}
	off, n := part()
	if err := u.fill(ctx, off, n); err != nil {
		return err
	}
	u.ranges = append(u.ranges, [2]int64{off, off + n})
	return nil
}

// TestNeverOverBudgetNorUnderUse: random searches at random of several objects.
// At every step no more is taken than the budget has, no more is on disk than is
// taken, and what a view has read stays as it is.
func TestNeverOverBudgetNorUnderUse(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		limit := int64(rapid.IntRange(10, 80).Draw(t, "pages")) * disk.Page
		w := newWorld(t, dir, limit, 2*disk.Page)
		defer w.Close()
		var open []*Shard
		contents := make(map[*Shard][]byte)
		for i := range 3 {
			content := noise(rng, 1+rng.IntN(150_000))
			s, err := w.open(w.put(t, fmt.Sprint("shard", i), content))
			if errors.Is(err, ErrNoRoom) {
				continue
			}
			must(t, err)
			sh := &Shard{cache: w.Cache, object: s}
			open, contents[sh] = append(open, sh), content
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		var views []*used
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rng.IntN(5) {
			case 0:
				sh := open[rng.IntN(len(open))]
				views = append(views, &used{view: w.view(sh.object, uint64(len(views))), whole: contents[sh]})
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
				if len(views) == 0 {
					continue
				}
				// If there is no room, nothing else makes any: do not wait.
				ctx := context.Background()
				u := views[rng.IntN(len(views))]
				if len(views) > 1 {
					ctx = contextOfRoom(ended, w)
				}
				err := u.read(ctx, rng)
				if err != nil && !errors.Is(err, errCrowded) && !errors.Is(err, context.Canceled) {
					t.Fatalf("%v", err)
				}
				u.crowded = false
			}
			w.settle()
			checkRoom(t, w)
			for _, u := range views {
				must(t, u.sound())
			}
		}
		for _, u := range views {
			u.close()
		}
		for _, sh := range open {
			must(t, sh.Close())
		}
		if left := w.budget.Used(); left != 0 {
			t.Fatalf("%d bytes are still taken when all is closed", left)
		}
		checkRoom(t, w)
	})
}

// contextOfRoom ends as soon as a view waits for room.
func contextOfRoom(ended context.Context, w *world) context.Context {
	return &whenWaiting{Context: context.Background(), w: w, ended: ended}
}

type whenWaiting struct {
	context.Context
	w     *world
	ended context.Context
}

func (c *whenWaiting) Done() <-chan struct{} {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if len(c.w.waiting) > 0 {
		return c.ended.Done()
	}
	return nil
}

func (c *whenWaiting) Err() error { return context.Canceled }

// settle waits for flights that nobody waits for.
func (w *world) settle() {
	for {
		w.mu.Lock()
		flying, freed := w.flying, w.freed.Next()
		w.mu.Unlock()
		if flying == 0 {
			return
		}
		<-freed
	}
}

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

// TestManySearches: many searches at once end, although there is too little room for all, and each
// reads the content of the objects. The account is checked meanwhile.
func TestManySearches(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	w := newWorld(t, t.TempDir(), 700_000, 4*disk.Page)
	defer w.Close()
	var shards []*Shard
	var contents [][]byte
	for i := range 4 {
		content := noise(rng, 500_000)
		s, err := w.Open(w.put(t, fmt.Sprint("shard", i), content))
		must(t, err)
		shards, contents = append(shards, s), append(contents, content)
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
				i := rng.IntN(len(shards))
				if err := readAll(t.Context(), shards[i], contents[i]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	searching.Wait()
	close(stop)
	<-watching
	for _, s := range shards {
		must(t, s.Close())
	}
	if left := w.budget.Used(); left != 0 {
		t.Errorf("%d bytes are still taken", left)
	}
}

// readAll reads an object from its beginning to its end, as a search that looks
// at everything does.
func readAll(ctx context.Context, s *Shard, content []byte) error {
	return s.cache.run(ctx, s.object, func(v *view) error {
		u := &used{view: v, whole: content}
		for off := int64(0); off < int64(len(content)); off += 10_000 {
			n := min(10_000, int64(len(content))-off)
			if err := u.fill(ctx, off, n); err != nil {
				return errors.Join(err, u.sound())
			}
			u.ranges = append(u.ranges, [2]int64{off, off + n})
		}
		return u.sound()
	})
}
