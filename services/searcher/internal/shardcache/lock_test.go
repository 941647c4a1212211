package shardcache_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// writer is a log.
type writer func(line string)

func (w writer) Write(line []byte) (int, error) {
	w(string(line))
	return len(line), nil
}

// freeNoBlocks has the file system take back nothing of the files of blocks in a folder.
func freeNoBlocks(t *testing.T, dir string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, fd := range fds {
		path, _ := os.Readlink("/proc/self/fd/" + fd.Name())
		if !strings.HasPrefix(path, filepath.Join(dir, ".blocks-")) {
			continue
		}
		readOnly, err := os.Open(path)
		must(t, err)
		number, err := strconv.Atoi(fd.Name())
		must(t, err)
		must(t, syscall.Dup3(int(readOnly.Fd()), number, 0))
		must(t, readOnly.Close())
	}
}

// TestEvictionHoldsNoLock: searches can have the store's lock while blocks make room for a whole file.
func TestEvictionHoldsNoLock(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := bucket.NewMemory(1 << 30)
		large, small := putShard(t, b, "large", 2_000_000), putShard(t, b, "small", 60_000)
		var s *budgeted
		failed, locked := false, false
		log := slog.New(slog.NewTextHandler(writer(func(line string) {
			if strings.Contains(line, "parts of a shard") {
				failed, locked = true, locked || s.Locked()
			}
		}), nil))
		cfg := shardcache.Config{Dir: dir, Budget: large.Size / 2, Loads: 1, Retry: time.Hour}
		store, err := shardcache.New(cfg, b, openReal, log, shardcache.NewMetrics(prometheus.NewRegistry()))
		must(t, err)
		s = &budgeted{Store: store, t: t, bucket: b, dir: dir, limit: cfg.Budget}
		load := func(refs ...shardcache.Ref) {
			s.Want(1, refs)
			for work := s.Next(); work != nil; work = s.Next() {
				work(t.Context())
			}
		}
		load(large)
		must(t, s.search(t.Context(), markerQuery(t), large))
		synctest.Wait() // until all blocks that it read are on the disk
		freeNoBlocks(t, dir)
		load(large, small)
		if !failed || locked {
			t.Errorf("blocks were evicted: %v, with the lock: %v", failed, locked)
		}
		s.stop()
	})
}
