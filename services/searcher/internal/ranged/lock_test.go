package ranged

import (
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// watched is a counter that calls back when it counts.
type watched struct {
	prometheus.Counter
	counted func()
}

func (w watched) Inc() {
	w.Counter.Inc()
	w.counted()
}

// TestLargeReservation: room for a large file is freed and taken a piece at a time, so that searches can have the lock meanwhile.
func TestLargeReservation(t *testing.T) {
	const grain, blocks = disk.Page, 6 * longestRun
	w := newWorld(t, t.TempDir(), (blocks+8)*grain, grain)
	defer w.Close()
	o := w.openNoise(t, "shard", noise(rand.New(rand.NewPCG(1, 9)), (blocks+longestRun)*grain))
	v := w.view(o)
	must(t, v.read(t.Context(), make([]byte, blocks*grain), 0))
	w.settle()
	v.close()
	least, evicted := w.budget.Used(), 0
	w.metrics.evictions = watched{w.metrics.evictions, func() { least, evicted = min(least, w.budget.Used()), evicted+1 }}
	if !w.Reserve(4*longestRun*grain) || evicted < 3*longestRun {
		t.Fatalf("%d of %d blocks were evicted", evicted, blocks)
	}
	if free := w.budget.Limit() - least; free > longestRun*grain {
		t.Errorf("%d bytes were free at a time", free)
	}
	w.shut(o)
}

// writer is a log.
type writer func()

func (w writer) Write(line []byte) (int, error) {
	w()
	return len(line), nil
}

// TestRemovalHoldsNoLock: searches can have the lock while the file of a shard's blocks is removed.
func TestRemovalHoldsNoLock(t *testing.T) {
	const grain = disk.Page
	w := newWorld(t, t.TempDir(), 40*grain, grain)
	defer w.Close()
	o := w.openNoise(t, "shard", noise(rand.New(rand.NewPCG(2, 9)), 40*grain))
	v := w.view(o)
	must(t, v.read(t.Context(), make([]byte, grain), 0))
	w.settle()
	v.close()
	failed, free := false, false
	w.log = slog.New(slog.NewTextHandler(writer(func() {
		if failed, free = true, w.mu.TryLock(); free {
			w.mu.Unlock()
		}
	}), nil))
	must(t, o.file.Close()) // so its removal fails
	w.shut(o)
	if !failed || !free {
		t.Errorf("the removal failed: %v, without the lock: %v", failed, free)
	}
}
