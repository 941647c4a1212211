package shardcache_test

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// obstacle is a folder in place of a shard's file. It cannot be removed as a file is, until it is cleared.
type obstacle struct {
	path  string
	lines int
}

func obstruct(t *testing.T, dir string, ref shardcache.Ref) *obstacle {
	t.Helper()
	o := &obstacle{path: dir + "/" + ref.Digest.String() + ".trawl"}
	must(t, os.RemoveAll(o.path))
	must(t, os.MkdirAll(o.path+"/file", 0o700))
	return o
}

func (o *obstacle) clear() error { return os.RemoveAll(o.path) }

// Write counts the lines of a log, and ends a loop that tries again and again.
func (o *obstacle) Write(line []byte) (int, error) {
	if o.lines++; o.lines > 10 {
		return 0, o.clear()
	}
	return len(line), nil
}

// TestLeftFileStays: a file of an earlier process that cannot be removed does not keep others from making room. It is logged once,
// and removed after a pause.
func TestLeftFileStays(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		wanted, large := refOf(string(make([]byte, 10*disk.Page))), shardcache.Ref{Size: 1 << 20}
		stuck := obstruct(t, dir, refOf("unwanted"))
		file := dir + "/" + wanted.Digest.String() + ".trawl"
		must(t, os.WriteFile(file, make([]byte, wanted.Size), 0o600))
		cfg := shardcache.Config{Dir: dir, Budget: 16 * disk.Page}
		log := slog.New(slog.NewTextHandler(stuck, &slog.HandlerOptions{Level: slog.LevelError}))
		s, err := shardcache.New(cfg, bucket.NewMemory(1), open, log, shardcache.NewMetrics(prometheus.NewRegistry()))
		must(t, err)
		s.Want(1, []shardcache.Ref{wanted, large}) // half of the budget is for blocks now
		s.Next()
		if _, err := os.Stat(file); err == nil || stuck.lines != 1 {
			t.Errorf("the file that can be removed: %v, %d lines are logged", err, stuck.lines)
		}
		if s.Prune() == nil {
			t.Error("the obstacle was removed")
		}
		for range 3 {
			s.Next()
		}
		if s.Used() == 0 || stuck.lines != 1 {
			t.Errorf("%d bytes are taken, %d lines are logged", s.Used(), stuck.lines)
		}
		must(t, stuck.clear())
		time.Sleep(time.Minute)
		if s.Next(); s.Used() != 0 {
			t.Errorf("%d bytes are taken after a pause", s.Used())
		}
	})
}

// TestWholeFileStays: a shard whose file cannot be removed is not read by ranges, which would make no room. Others make it.
func TestWholeFileStays(t *testing.T) {
	b := bucket.NewMemory(1 << 30)
	var refs []shardcache.Ref
	var sum int64
	for i := range 3 {
		ref := putShard(t, b, fmt.Sprint("repo", i), 60_000)
		refs, sum = append(refs, ref), sum+disk.Rounded(ref.Size)
	}
	s := newBudgeted(t, t.TempDir(), b, sum)
	s.Want(1, refs)
	var loads sync.WaitGroup
	for work := s.Next(); work != nil; work = s.Next() {
		loads.Go(func() { work(t.Context()) })
	}
	loads.Wait()
	q := markerQuery(t)
	for _, ref := range refs[1:] { // the first one gives way first
		must(t, s.search(t.Context(), q, ref))
	}
	stuck := obstruct(t, s.dir, refs[0])
	s.Want(2, append(slices.Clone(refs), shardcache.Ref{Size: sum})) // half of the budget is for blocks now
	s.Next()
	if left := s.whole(refs); len(left) != 1 {
		t.Errorf("%d files are there", len(left))
	}
	must(t, b.Delete(t.Context(), refs[0].Key))
	if err := s.search(t.Context(), q, refs[0]); err != nil {
		t.Errorf("the shard of the file that stays: %v", err)
	}
	must(t, stuck.clear())
	s.stop()
}
