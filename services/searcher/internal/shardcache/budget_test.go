package shardcache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// budgeted is a store of real shards that runs with a budget.
type budgeted struct {
	*shardcache.Store
	t      *testing.T
	bucket bucket.Bucket
	dir    string
	limit  int64
}

func newBudgeted(t *testing.T, dir string, b bucket.Bucket, limit int64) *budgeted {
	t.Helper()
	m := shardcache.NewMetrics(prometheus.NewRegistry())
	cfg := shardcache.Config{Dir: dir, Budget: limit, Loads: 2, Grace: time.Second, Retry: 10 * time.Millisecond}
	s, err := shardcache.New(cfg, b, openReal, slog.New(slog.DiscardHandler), m)
	must(t, err)
	return &budgeted{Store: s, t: t, bucket: b, dir: dir, limit: limit}
}

func runBudgeted(t *testing.T, dir string, b bucket.Bucket, limit int64) (*budgeted, func()) {
	t.Helper()
	s := newBudgeted(t, dir, b, limit)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	stop := sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return s, stop
}

func openReal(path string) (shardcache.Shard, error) {
	sh, err := search.Open(path)
	if err != nil {
		return nil, err
	}
	return sh, nil
}

// putShard puts a shard of one repo into the bucket, with the word marker and about size bytes that
// do not compress.
func putShard(t *testing.T, b bucket.Bucket, repo string, size int) shardcache.Ref {
	t.Helper()
	var out bytes.Buffer
	builder, err := build.NewBuilder(&out, build.Options{})
	must(t, err)
	must(t, builder.AddRepo(docstore.Repo{Name: repo, Branches: []docstore.Branch{{Name: "main", Commit: "c0ffee"}}}))
	rng := rand.New(rand.NewPCG(uint64(size), uint64(len(repo))))
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789\n "
	for i := range 1 + size/20_000 {
		text := make([]byte, 20_000)
		for j := range text {
			text[j] = letters[rng.IntN(len(letters))]
		}
		copy(text, "marker of "+repo+"\n")
		must(t, builder.Add(build.Document{Path: fmt.Appendf(nil, "file%04d", i), Content: text, Branches: []uint32{0}}))
	}
	done, err := builder.Close()
	must(t, err)
	ref := shardcache.Ref{Digest: searchapi.Digest(done.SHA256), Key: "shards/" + repo, Size: done.Size}
	must(t, b.Put(t.Context(), ref.Key, &out, bucket.PutOptions{Size: done.Size}))
	return ref
}

func markerQuery(t *testing.T) *search.Query {
	t.Helper()
	tree, err := query.Parse("marker", query.ParseOptions{})
	must(t, err)
	q, err := search.Prepare(tree)
	must(t, err)
	return q
}

// search searches a shard that is wanted, and checks that its files are the repo's.
func (b *budgeted) search(ctx context.Context, q *search.Query, ref shardcache.Ref) error {
	h, err := b.Acquire(ctx, ref.Digest, later())
	if err != nil {
		return err
	}
	defer h.Release()
	r, err := search.Search(ctx, h.Shard, q, search.Options{MaxFiles: 1000, MaxMatchesPerFile: 10})
	if err != nil {
		return err
	}
	if len(r.Files) == 0 || "shards/"+r.Files[0].Repo != ref.Key {
		return fmt.Errorf("%d files found in %s", len(r.Files), ref.Key)
	}
	return nil
}

// checkDisk compares the disk with the budget. Measuring takes a while, in which room can move from
// one file to another, so only a repeated excess counts.
func (b *budgeted) checkDisk() {
	b.t.Helper()
	var taken int64
	for range 5 {
		var err error
		taken, err = disk.Taken(b.dir)
		must(b.t, err)
		if taken <= b.limit {
			return
		}
	}
	b.t.Errorf("%d bytes are on disk, the budget is of %d", taken, b.limit)
}

func (b *budgeted) settled() {
	for counts, changed := b.Counts(); !counts.Settled(); counts, changed = b.Counts() {
		<-changed
	}
}

// TestFlipsWithinTheBudget: sets of shards of three times the budget come and go while they are
// searched. Every wanted shard can be searched, and the disk never holds more than the budget, even
// while two generations are served, and after a restart with a smaller budget.
func TestFlipsWithinTheBudget(t *testing.T) {
	dir, b := t.TempDir(), bucket.NewMemory(1<<30)
	var refs []shardcache.Ref
	var sum int64
	for i := range 16 {
		ref := putShard(t, b, fmt.Sprintf("repo%02d", i), 20_000+i*20_000)
		refs, sum = append(refs, ref), sum+ref.Size
	}
	q := markerQuery(t)
	for round, limit := range []int64{sum / 3, sum / 4, sum * 2} {
		s, stop := runBudgeted(t, dir, b, limit)
		rng := rand.New(rand.NewPCG(uint64(round), 3))
		for range 8 {
			first := rng.IntN(len(refs) / 2)
			wanted := refs[first : first+len(refs)/2]
			s.Want(1, wanted)
			s.checkDisk()
			s.settled()
			var searches sync.WaitGroup
			for range 3 {
				searches.Go(func() {
					for _, ref := range wanted {
						if err := s.search(t.Context(), q, ref); err != nil {
							t.Errorf("budget of %d: %v", limit, err)
						}
					}
				})
			}
			s.checkDisk()
			searches.Wait()
			s.checkDisk()
		}
		if round == 0 {
			must(t, s.Prune())
		}
		stop()
	}
}

// TestLeftFilesGiveWay: after a restart with a smaller budget, the old files of wanted and unwanted
// shards take most of it. They make room for the blocks of wanted shards, all of which load at the
// first try and can be searched.
func TestLeftFilesGiveWay(t *testing.T) {
	b := bucket.NewMemory(1 << 30)
	var refs []shardcache.Ref
	var sum int64
	for i := range 16 {
		ref := putShard(t, b, fmt.Sprintf("repo%02d", i), 20_000+i*20_000)
		refs, sum = append(refs, ref), sum+ref.Size
	}
	q := markerQuery(t)
	for still := range 9 { // this many of eight are wanted after the restart too
		dir := t.TempDir()
		s, stop := runBudgeted(t, dir, b, 2*sum)
		s.Want(1, refs[8-still:16-still])
		s.settled()
		stop()
		s, stop = runBudgeted(t, dir, b, sum/4)
		s.Want(1, refs[8:])
		s.settled()
		for _, ref := range refs[8:] {
			if err := s.search(t.Context(), q, ref); err != nil {
				t.Errorf("%d still wanted, budget of %d: %v", still, sum/4, err)
			}
		}
		s.checkDisk()
		stop()
	}
}

// TestSweepMovesNoWholeFile: shards with many requests become whole files in place of others.
// Sweeps over all shards then leave them whole.
func TestSweepMovesNoWholeFile(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := bucket.NewMemory(1 << 30)
		var refs []shardcache.Ref
		var sum int64
		for i := range 12 {
			ref := putShard(t, b, fmt.Sprintf("repo%02d", i), 60_000)
			refs, sum = append(refs, ref), sum+disk.Rounded(ref.Size)
		}
		s, stop := runBudgeted(t, dir, b, sum/2)
		defer stop()
		s.Want(1, refs)
		s.settled()
		if n := len(s.whole(refs)); n == 0 || n > 6 {
			t.Fatalf("%d shards of 12 are whole files", n)
		}
		q := markerQuery(t)
		hot := refs[:3]
		for range 40 {
			for _, ref := range hot {
				must(t, s.search(t.Context(), q, ref))
			}
		}
		time.Sleep(10 * time.Minute) // a fetch may have to be tried again
		synctest.Wait()
		checkWhole(t, "asked for", hot, s.whole(refs))
		for range 5 {
			for _, ref := range refs {
				must(t, s.search(t.Context(), q, ref))
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		checkWhole(t, "swept", hot, s.whole(refs))
		s.checkDisk()
	})
}

// TestRoomOfOneThatGrows: a shard that made room for a requested one gets none of that room back,
// whichever of their fetches comes first.
func TestRoomOfOneThatGrows(t *testing.T) {
	b := bucket.NewMemory(1 << 30)
	var refs []shardcache.Ref
	for i := range 4 {
		refs = append(refs, putShard(t, b, fmt.Sprintf("repo%02d", i), 60_000))
	}
	one := disk.Rounded(refs[0].Size)
	s := newBudgeted(t, t.TempDir(), b, 2*one+4*disk.Page) // and a page for each sparse file
	s.Want(1, refs)
	for work := s.Next(); work != nil; work = s.Next() {
		work(t.Context())
	}
	before := s.whole(refs)
	if len(before) != 1 {
		t.Fatalf("%d shards of 4 are whole files", len(before))
	}
	hot := refs[slices.IndexFunc(refs, func(r shardcache.Ref) bool { return r != before[0] })]
	for range 40 {
		must(t, s.search(t.Context(), markerQuery(t), hot))
	}
	var works []func(context.Context)
	for work := s.Next(); work != nil; work = s.Next() {
		works = append(works, work)
	}
	for _, work := range slices.Backward(works) {
		work(t.Context())
	}
	checkWhole(t, "asked for", []shardcache.Ref{hot}, s.whole(refs))
	s.checkDisk()
	s.stop()
}

// stop ends a store that does not run.
func (b *budgeted) stop() {
	ended, end := context.WithCancel(b.t.Context())
	end()
	b.Run(ended)
}

// whole are the shards that are whole files.
func (b *budgeted) whole(refs []shardcache.Ref) (files []shardcache.Ref) {
	for _, ref := range refs {
		if _, err := os.Stat(b.dir + "/" + ref.Digest.String() + ".trawl"); err == nil {
			files = append(files, ref)
		}
	}
	return files
}

func checkWhole(t *testing.T, when string, want, got []shardcache.Ref) {
	t.Helper()
	there := make(map[string]bool)
	for _, ref := range got {
		there[ref.Key] = true
	}
	for _, ref := range want {
		if !there[ref.Key] {
			t.Errorf("when they were %s, the hot %s is no whole file; those are %v", when, ref.Key, there)
		}
	}
}

// TestDamagedBlocks: a shard whose ranged reads return damaged bytes is reported, and read anew.
func TestDamagedBlocks(t *testing.T) {
	b := bucket.NewMemory(1 << 30)
	large := putShard(t, b, "large", 2_000_000)
	s, _ := runBudgeted(t, t.TempDir(), b, large.Size/2)
	s.Want(1, []shardcache.Ref{large})
	s.settled()
	h, err := s.Acquire(t.Context(), large.Digest, later())
	must(t, err)
	h.Corrupt(errors.New("test"))
	h.Release()
	testrun.Eventually(t, "it is read anew", func(ctx context.Context) error {
		if h, err = s.Acquire(ctx, large.Digest, later()); err != nil && !errors.Is(err, shardcache.ErrCorrupt) {
			t.Fatal(err)
		}
		return err
	})
	defer h.Release()
	if f, err := h.Shard.File(t.Context(), "large", []byte("file0001"), "", search.Options{}, search.Part{}); err != nil || !bytes.HasPrefix(f.Content, []byte("marker of large")) {
		t.Errorf("%v", err)
	}
	s.checkDisk()
}
