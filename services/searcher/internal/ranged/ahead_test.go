package ranged

import (
	"context"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/trawl-search/trawl/internal/wait"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// gate holds ranged reads until it is opened.
type gate struct {
	begun  wait.Change
	opened chan struct{}
}

func (g *gate) hold(ctx context.Context, r io.ReadCloser) (io.ReadCloser, error) {
	g.begun.Notify()
	select {
	case <-g.opened:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// awaitReads waits until that many reads have begun.
func (w *world) awaitReads(g *gate, n int64) {
	for {
		begun := g.begun.Next()
		if w.source.reads.Load() >= n {
			return
		}
		<-begun
	}
}

// TestAnnouncedBlocksComeTogether: what a view announces is downloaded at the same time and only once,
// and it need not be read.
func TestAnnouncedBlocksComeTogether(t *testing.T) {
	const grain = 2 * disk.Page
	content := noise(rand.New(rand.NewPCG(1, 2)), 100*grain)
	w := newWorld(t, t.TempDir(), 0, grain)
	defer w.Close()
	o, err := w.open(w.put(t, "shard", content))
	must(t, err)
	g := &gate{opened: make(chan struct{})}
	w.source.breakBy(g.hold)
	v := w.view(o, 1)
	for _, block := range []int64{3, 50, 10, 3, 80} {
		v.soon(block*grain, grain)
	}
	w.awaitReads(g, 4)
	close(g.opened)
	for _, block := range []int64{3, 10, 50} {
		must(t, v.fill(t.Context(), block*grain, grain))
	}
	w.settle()
	if n := w.source.reads.Load(); n != 4 {
		t.Errorf("%d reads of four blocks", n)
	}
	v.close()
	w.mu.Lock()
	w.leave(o)
	w.mu.Unlock()
}

// TestAnnouncedBlocksAreBounded: at most mostAhead reads are on their way for a view, the others
// follow as it reads on, and the reads end with the view.
func TestAnnouncedBlocksAreBounded(t *testing.T) {
	const grain = 2 * disk.Page
	content := noise(rand.New(rand.NewPCG(1, 3)), 400*grain)
	w := newWorld(t, t.TempDir(), 0, grain)
	defer w.Close()
	o, err := w.open(w.put(t, "shard", content))
	must(t, err)
	g := &gate{opened: make(chan struct{})}
	w.source.breakBy(g.hold)
	v := w.view(o, 1)
	for block := int64(0); block < 400; block += 4 {
		v.soon(block*grain, grain)
	}
	w.awaitReads(g, mostAhead)
	if n := len(v.ahead); n != mostAhead {
		t.Errorf("%d reads are on their way", n)
	}
	v.close() // abandons all of them
	w.settle()
	if n := w.source.reads.Load(); n != mostAhead {
		t.Errorf("%d reads after the view was closed", n)
	}
	w.source.breakBy(nil)
	v = w.view(o, 2)
	for block := int64(0); block < 400; block += 4 {
		v.soon(block*grain, grain)
	}
	for block := int64(0); block < 400; block += 4 {
		must(t, v.fill(t.Context(), block*grain, grain))
	}
	if n := w.source.reads.Load(); n > mostAhead+100 {
		t.Errorf("%d reads of a hundred blocks", n-mostAhead)
	}
	v.close()
	w.mu.Lock()
	w.leave(o)
	w.mu.Unlock()
}
