package shardcache_test

import (
	"context"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/testrun"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// account is a store whose use of the budget is held against its files. A test does its
// work, piece by piece.
type account struct {
	*world
	refs, wanted []shardcache.Ref
	uses         []use
	revision     int64
}

type use struct {
	handle *shardcache.Handle
	ref    shardcache.Ref
}

func newAccount(t *testing.T) *account {
	dir := t.TempDir()
	w := &world{t: t, dir: dir, bucket: bucket.NewMemory(1 << 20)}
	m := shardcache.NewMetrics(prometheus.NewRegistry())
	var err error
	w.Store, err = shardcache.New(shardcache.Config{Dir: dir, Loads: 1}, w.bucket, open, slog.New(slog.DiscardHandler), m)
	must(t, err)
	a := &account{world: w}
	for _, content := range []string{"one", "two", "three", "four"} {
		a.refs = append(a.refs, w.put(content+" "+string(make([]byte, 5000*len(a.refs)))))
	}
	a.want(nil)
	must(t, w.Prune())
	return a
}

// want has the store want these shards.
func (a *account) want(refs []shardcache.Ref) {
	a.wanted, a.revision = refs, a.revision+1
	a.Want(a.revision, refs)
}

// work does all that there is to do.
func (a *account) work() {
	for work := a.Next(); work != nil; work = a.Next() {
		work(context.Background())
	}
}

// stored is what all files take.
func (a *account) stored() (sum int64) {
	must(a.t, filepath.WalkDir(a.dir, func(_ string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		info, err := f.Info()
		if err == nil {
			sum += disk.Rounded(info.Size())
		}
		return err
	}))
	return sum
}

// check is the property. Files that were removed or replaced take room as long as they are used.
func (a *account) check() {
	a.t.Helper()
	used, stored := a.Used(), a.stored()
	if used < stored || used > stored && len(a.uses) == 0 {
		a.t.Fatalf("%d bytes are taken, %d are on disk, %d shards in use", used, stored, len(a.uses))
	}
	for _, ref := range a.refs {
		if wanted := slices.Contains(a.wanted, ref); a.Ready(ref.Digest) != wanted {
			a.t.Fatalf("shard %s is wanted: %v, ready: %v", ref.Digest, wanted, !wanted)
		}
	}
}

// release ends some uses.
func (a *account) release(which func(use) bool) {
	a.uses = slices.DeleteFunc(a.uses, func(u use) bool {
		ends := which(u)
		if ends {
			u.handle.Release()
		}
		return ends
	})
}

// step does one thing at random.
func (a *account) step(rng *rand.Rand) {
	switch what := rng.IntN(6); {
	case what == 0:
		for range 1 + rng.IntN(2) {
			rng.Shuffle(len(a.refs), func(i, j int) { a.refs[i], a.refs[j] = a.refs[j], a.refs[i] })
			a.want(slices.Clone(a.refs[:rng.IntN(len(a.refs)+1)]))
		}
	case what < 3 && len(a.wanted) > 0:
		ref := a.wanted[rng.IntN(len(a.wanted))]
		h, err := a.Acquire(a.t.Context(), ref.Digest, later())
		must(a.t, err)
		a.uses = append(a.uses, use{h, ref})
	case len(a.uses) > 0:
		one := a.uses[rng.IntN(len(a.uses))]
		if what < 5 {
			one.handle.Corrupt(&format.CorruptError{File: "f", Section: "s", Reason: "r"})
		}
		if what > 3 {
			a.release(func(u use) bool { return u == one })
		}
	}
}

// TestAccountIsWhatIsOnDisk: shards come and go, and are found damaged while they are used, in any
// order. What is taken of the budget is what the files take, those in quarantine included, and nothing
// when all are dropped. What is wanted last is served, and nothing else.
func TestAccountIsWhatIsOnDisk(t *testing.T) {
	a, rng := newAccount(t), testrun.Rand(t)
	for range 30 {
		for range 15 {
			a.step(rng)
			a.work()
			a.check()
		}
		a.release(func(use) bool { return true })
		a.work()
		a.check()
		a.want(nil)
		a.work()
		a.check()
		if used := a.Used(); used != 0 {
			t.Fatalf("%d bytes are taken when all is dropped", used)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	a.Run(ended)
}

// TestManyGoAtOnce: the shards that stay are counted once, however many go.
func TestManyGoAtOnce(t *testing.T) {
	a := newAccount(t)
	a.want(a.refs)
	a.work()
	var counts int
	a.CountReady(&counts)
	a.want(a.refs[:1])
	a.work()
	if a.check(); counts != 1 {
		t.Errorf("they were counted %d times", counts)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	a.Run(ended)
}
