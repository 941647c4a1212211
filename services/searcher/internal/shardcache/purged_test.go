package shardcache_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// TestCleared: a revision is reported when the grace time is over and nothing is left of the shards
// that were unwanted then, neither in use nor in quarantine. A shard that became unwanted between
// two revisions may have done so right after the first.
func TestCleared(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w, stop := run(t, dir, bucket.NewMemory(1<<20))
		defer stop()
		expect := func(what string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := w.PurgedThrough(); got != want {
				t.Errorf("%s: %d, want %d", what, got, want)
			}
		}
		expect("before it is known what is wanted", 0)
		kept, used, damaged := w.put("shard kept"), w.put("shard used"), w.put("shard damaged")
		w.Want(10, []shardcache.Ref{kept, used, damaged})
		must(t, w.Prune())
		expect("all is wanted", 10)
		h, bad := w.acquire(used), w.acquire(damaged)
		bad.Corrupt(&format.CorruptError{File: "f", Section: "s", Reason: "r"})
		bad.Release()
		aside := filepath.Join(dir, "quarantine", damaged.Digest.String()+".trawl")
		if _, err := os.Stat(aside); err != nil {
			t.Errorf("nothing is in quarantine: %v", err)
		}
		w.Want(20, []shardcache.Ref{kept, damaged})
		w.Want(30, []shardcache.Ref{kept})
		expect("within the grace time", 10)
		time.Sleep(2 * time.Minute)
		if _, err := os.Stat(aside); err == nil {
			t.Error("it is in quarantine for ever")
		}
		expect("it is removed, and used", 10)
		h.Release()
		expect("nobody uses it", 30)
		w.Want(40, []shardcache.Ref{kept})
		expect("nothing has changed", 40)
		w.Want(5, nil)
		expect("another etcd", 0)
	})
}

// TestClearedAfterRestart: what an earlier process left counts until it is removed.
func TestClearedAfterRestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := bucket.NewMemory(1 << 20)
		w, stop := run(t, dir, b)
		left := w.put("shard left")
		w.Want(10, []shardcache.Ref{left})
		w.acquire(left).Release()
		stop()
		purgedByPrune(t, dir, b)
	})
}

// TestQuarantineAfterRestart: what an earlier process put into quarantine counts until it is removed.
func TestQuarantineAfterRestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := bucket.NewMemory(1 << 20)
		w, stop := run(t, dir, b)
		damaged := w.put("shard damaged")
		w.Want(10, []shardcache.Ref{damaged})
		h := w.acquire(damaged)
		h.Corrupt(&format.CorruptError{File: "f", Section: "s", Reason: "r"})
		h.Release()
		stop()
		purgedByPrune(t, dir, b)
	})
}

// purgedByPrune starts a process that wants nothing of what an earlier one left: nobody knows since
// when, so it counts until it is removed.
func purgedByPrune(t *testing.T, dir string, b bucket.Bucket) {
	t.Helper()
	w, stop := run(t, dir, b)
	defer stop()
	w.Want(20, nil)
	if got := w.PurgedThrough(); got != 0 {
		t.Errorf("before it is removed: %d", got)
	}
	must(t, w.Prune())
	if got := w.PurgedThrough(); got != 20 {
		t.Errorf("after it: %d", got)
	}
}
