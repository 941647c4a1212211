package ranged

import (
	"context"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// gate holds ranged reads until it is opened.
type gate struct {
	begun, opened chan struct{}
}

func newGate() *gate {
	return &gate{begun: make(chan struct{}, 4*fetches), opened: make(chan struct{})}
}

func (g *gate) hold(ctx context.Context, r io.ReadCloser) (io.ReadCloser, error) {
	g.begun <- struct{}{}
	select {
	case <-g.opened:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// await waits until that many more reads have begun.
func (g *gate) await(n int) {
	for range n {
		<-g.begun
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
	g := newGate()
	w.source.breakBy(g.hold)
	v := w.view(o, 1)
	for _, block := range []int64{3, 50, 10, 3, 80} {
		v.soon(block*grain, grain)
	}
	g.await(4)
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

// TestAnnouncedBlocksAreBounded: a view that is alone has at most fetches reads on their way, the others
// follow as it reads on, and the reads end with the view.
func TestAnnouncedBlocksAreBounded(t *testing.T) {
	const grain, wanted = 2 * disk.Page, fetches + 100
	content := noise(rand.New(rand.NewPCG(1, 3)), 4*wanted*grain)
	w := newWorld(t, t.TempDir(), 0, grain)
	defer w.Close()
	o, err := w.open(w.put(t, "shard", content))
	must(t, err)
	g := newGate()
	w.source.breakBy(g.hold)
	v := w.view(o, 1)
	for block := int64(0); block < 4*wanted; block += 4 {
		v.soon(block*grain, grain)
	}
	g.await(fetches)
	if n := len(v.ahead); n != fetches {
		t.Errorf("%d reads are on their way", n)
	}
	v.close() // abandons all of them
	w.settle()
	if n := w.source.reads.Load(); n != fetches {
		t.Errorf("%d reads after the view was closed", n)
	}
	w.source.breakBy(nil)
	v = w.view(o, 2)
	for block := int64(0); block < 4*wanted; block += 4 {
		v.soon(block*grain, grain)
	}
	for block := int64(0); block < 4*wanted; block += 4 {
		must(t, v.fill(t.Context(), block*grain, grain))
	}
	if n := w.source.reads.Load(); n > fetches+wanted {
		t.Errorf("%d reads of %d blocks", n-fetches, wanted)
	}
	v.close()
	w.mu.Lock()
	w.leave(o)
	w.mu.Unlock()
}

// TestAnnouncedBlocksHaveLittleRoom: the blocks that views announce take a quarter of the disk budget
// while they are on their way, or one block each.
func TestAnnouncedBlocksHaveLittleRoom(t *testing.T) {
	const grain = 2 * disk.Page
	content := noise(rand.New(rand.NewPCG(1, 4)), 400*grain)
	for views, want := range map[int]int{1: 10, 2: 10, 3: 9, 20: 20} {
		w := newWorld(t, t.TempDir(), 40*grain, grain)
		o, err := w.open(w.put(t, "shard", content))
		must(t, err)
		g := newGate()
		w.source.breakBy(g.hold)
		var all []*view
		for i := range views {
			all = append(all, w.view(o, uint64(i)))
		}
		blocks := 0
		for i, v := range all {
			v.soon(int64(i)*20*grain, 15*grain)
			for _, fl := range v.ahead {
				blocks += len(fl.blocks)
			}
		}
		if blocks != want {
			t.Errorf("%d views have %d blocks on their way", views, blocks)
		}
		for _, v := range all {
			v.close()
		}
		w.settle()
		w.mu.Lock()
		w.leave(o)
		w.mu.Unlock()
		w.Close()
	}
}
