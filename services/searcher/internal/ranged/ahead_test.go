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

// TestAnnouncedBlocksComeTogether: what a view announces is downloaded at the same time and only once, also without room on the disk,
// and it need not be read.
func TestAnnouncedBlocksComeTogether(t *testing.T) {
	const grain = 2 * disk.Page
	content := noise(rand.New(rand.NewPCG(1, 2)), 100*grain)
	for _, limit := range []int64{0, 1} {
		w := newWorld(t, t.TempDir(), limit, grain)
		o := w.openNoise(t, "shard", content)
		g := newGate()
		w.source.breakBy(g.hold)
		v := w.view(o)
		for _, block := range []int64{3, 50, 10, 3, 80} {
			v.soon(block*grain, grain)
		}
		g.await(4)
		close(g.opened)
		for _, block := range []int64{3, 10, 50, 3} {
			must(t, v.read(t.Context(), make([]byte, grain), block*grain))
		}
		w.settle()
		if n := w.source.reads.Load(); n != 4 {
			t.Errorf("%d reads of four blocks", n)
		}
		v.close()
		w.shut(o)
		w.Close()
	}
}

// TestAnnouncedBlocksAreBounded: a view holds no more than its share of the memory; the other announced blocks follow as it reads on, and the
// reads that it has not waited for end with it.
func TestAnnouncedBlocksAreBounded(t *testing.T) {
	const grain, share = 2 * disk.Page, 8
	w := newWorld(t, t.TempDir(), 1, grain)
	defer w.Close()
	w.searchMemory = share * grain
	content := noise(rand.New(rand.NewPCG(1, 3)), 30*grain)
	o := w.openNoise(t, "shard", content)
	g := newGate()
	w.source.breakBy(g.hold)
	v := w.view(o)
	for block := int64(0); block < 30; block += 2 {
		v.soon(block*grain, grain)
	}
	g.await(share)
	if n := len(v.held); n != share {
		t.Errorf("%d reads are on their way", n)
	}
	v.close() // ends all of them
	w.settle()
	if n := w.source.reads.Load(); n != share {
		t.Errorf("%d reads after the view was closed", n)
	}
	w.source.breakBy(nil)
	v = w.view(o)
	for block := int64(0); block < 30; block += 2 {
		v.soon(block*grain, grain)
	}
	p := make([]byte, 1)
	for block := int64(0); block < 30; block += 2 {
		must(t, v.read(t.Context(), p, block*grain))
		if n := len(v.holds); n > share {
			t.Errorf("a view holds %d blocks", n)
		}
	}
	if n := w.source.reads.Load(); n != share+15 {
		t.Errorf("%d reads of 15 blocks", n-share)
	}
	v.close()
	w.settle()
	w.shut(o)
}

// TestViewsShareTheMemory: many views together hold as much as few, or one block each.
func TestViewsShareTheMemory(t *testing.T) {
	const grain = 2 * disk.Page
	content := noise(rand.New(rand.NewPCG(1, 4)), 4*grain)
	for views, want := range map[int]int{1: 3, 30: 2, 100: 1} {
		w := newWorld(t, t.TempDir(), 1, grain)
		w.memory = 64 * grain
		o := w.openNoise(t, "shard", content)
		var all []*view
		for range views {
			all = append(all, w.view(o))
		}
		for _, v := range all {
			v.soon(0, 3*grain)
			if n := len(v.holds); n > want {
				t.Errorf("one of %d views holds %d blocks", views, n)
			}
		}
		for _, v := range all {
			v.close()
		}
		w.settle()
		w.shut(o)
		w.Close()
	}
}

// TestEvictedBlocksComeTogether: blocks that were on the disk when they were announced, and are evicted before they are read, are downloaded at the
// same time once the first is missed.
func TestEvictedBlocksComeTogether(t *testing.T) {
	const grain, limit = 2 * disk.Page, 40 * 2 * disk.Page
	w := newWorld(t, t.TempDir(), limit, grain)
	defer w.Close()
	o := w.openNoise(t, "shard", noise(rand.New(rand.NewPCG(1, 8)), 40*grain))
	blocks, p := []int64{3, 10, 20, 30}, make([]byte, grain)
	before := w.view(o)
	for _, block := range blocks {
		must(t, before.read(t.Context(), p, block*grain))
	}
	before.close()
	w.settle()
	v := w.view(o)
	for _, block := range blocks {
		v.soon(block*grain, grain)
	}
	if n := w.source.reads.Load(); n != 4 {
		t.Errorf("%d reads of four blocks", n)
	}
	for w.mu.Lock(); w.evict(); {
	}
	w.mu.Unlock()
	g := newGate()
	w.source.breakBy(g.hold)
	done := make(chan error, 1)
	go func() { done <- v.read(t.Context(), p, blocks[0]*grain) }()
	g.await(len(blocks))
	close(g.opened)
	must(t, <-done)
	v.close()
	w.settle()
	w.shut(o)
}
