package ranged

import (
	"context"
	"errors"
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

// far is a distance of blocks that are not read together.
const far = near + 1

// beginRead begins to read a block, which starts the downloads of what was announced.
func beginRead(v *view, block, grain int64) <-chan error {
	done := make(chan error, 1)
	go func() { done <- v.read(context.Background(), make([]byte, grain), block*grain) }()
	return done
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
		for _, block := range []int64{3, 50, 20, 3, 80} {
			v.soon(block*grain, grain)
		}
		done := beginRead(v, 3, grain)
		g.await(4)
		close(g.opened)
		must(t, <-done)
		for _, block := range []int64{3, 20, 50, 3} {
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

// start does what the next read does first.
func (v *view) start() {
	v.cache.mu.Lock()
	defer v.cache.mu.Unlock()
	v.lookAhead()
}

// TestNearBlocksShareARead: announced blocks that are near each other come with one read, in whatever order they were announced, with those between them
// unless one of these is there.
func TestNearBlocksShareARead(t *testing.T) {
	const grain = disk.Page
	content := noise(rand.New(rand.NewPCG(1, 9)), 200*grain)
	for name, c := range map[string]struct {
		there, announced []int64
		reads            int64
		blocks           int64
	}{
		"neighbours":        {announced: []int64{4, 3, 5}, reads: 1, blocks: 3},
		"near":              {announced: []int64{20 + near, 20, 20 - near}, reads: 1, blocks: 2*near + 1},
		"far":               {announced: []int64{20, 20 + far}, reads: 2, blocks: 2},
		"long":              {announced: []int64{0, 8, 16, 24, 32, 40, 48, 56, 64}, reads: 2, blocks: 58},
		"one between them":  {there: []int64{12}, announced: []int64{10, 14}, reads: 2, blocks: 2},
		"the first is here": {there: []int64{10}, announced: []int64{10, 14}, reads: 1, blocks: 1},
	} {
		w := newWorld(t, t.TempDir(), 1000*disk.Page, grain)
		o := w.openNoise(t, "shard", content)
		before := w.view(o)
		for _, block := range c.there {
			must(t, before.read(t.Context(), make([]byte, grain), block*grain))
		}
		before.close()
		w.settle()
		reads, bytes := w.source.reads.Load(), w.source.bytes.Load()
		v := w.view(o)
		for _, block := range c.announced {
			v.soon(block*grain, grain)
		}
		must(t, v.read(t.Context(), make([]byte, grain), c.announced[0]*grain))
		w.settle()
		reads, blocks := w.source.reads.Load()-reads, (w.source.bytes.Load()-bytes)/grain
		if reads != c.reads || blocks != c.blocks {
			t.Errorf("%s: %d reads of %d blocks, want %d of %d", name, reads, blocks, c.reads, c.blocks)
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
	content := noise(rand.New(rand.NewPCG(1, 3)), 15*far*grain)
	o := w.openNoise(t, "shard", content)
	g := newGate()
	w.source.breakBy(g.hold)
	v := w.view(o)
	for block := int64(0); block < 15*far; block += far {
		v.soon(block*grain, grain)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.read(ctx, make([]byte, 1), 0) }()
	g.await(share)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the read: %v", err)
	}
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
	for block := int64(0); block < 15*far; block += far {
		v.soon(block*grain, grain)
	}
	p := make([]byte, 1)
	for block := int64(0); block < 15*far; block += far {
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
			v.start()
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

// TestWhatWasReadLeavesFirst: of announced blocks that came with one read, those of which all were read make room before older ones of which some
// were, and these before no others come.
func TestWhatWasReadLeavesFirst(t *testing.T) {
	const grain, share = 2 * disk.Page, 8
	w := newWorld(t, t.TempDir(), 1, grain)
	defer w.Close()
	w.searchMemory = share * grain
	o := w.openNoise(t, "shard", noise(rand.New(rand.NewPCG(1, 5)), 100*grain))
	for name, c := range map[string]struct {
		before, after []int64
		reads         int64
	}{
		"all of the second":  {[]int64{0, 20, 22}, []int64{4}, 3},
		"some of both":       {[]int64{0, 20}, []int64{22}, 3},
		"the first, however": {[]int64{0, 20}, []int64{22, 4}, 4},
	} {
		v, began := w.view(o), w.source.reads.Load()
		read := func(blocks ...int64) {
			for _, block := range blocks {
				must(t, v.read(t.Context(), make([]byte, grain), block*grain))
				w.settle()
			}
		}
		for _, block := range []int64{0, 4, 20, 22} { // as many blocks as the view may hold, with those between them
			v.soon(block*grain, grain)
		}
		read(c.before...)
		v.soon(40*grain, grain)
		read(40)
		read(c.after...)
		if n := w.source.reads.Load() - began; n != c.reads {
			t.Errorf("%s: %d reads, want %d", name, n, c.reads)
		}
		v.close()
	}
	w.shut(o)
}

// TestReadsOfOthersAreBounded: a view holds no read of another view that is larger than its own share.
func TestReadsOfOthersAreBounded(t *testing.T) {
	const grain = 2 * disk.Page
	w := newWorld(t, t.TempDir(), 1, grain)
	defer w.Close()
	w.memory = 64 * grain
	o := w.openNoise(t, "shard", noise(rand.New(rand.NewPCG(1, 6)), 40*grain))
	g := newGate()
	w.source.breakBy(g.hold)
	first := w.view(o)
	first.soon(0, 9*grain)
	first.start()
	views := []*view{first}
	for range 31 {
		views = append(views, w.view(o))
	}
	for _, v := range views[1:] {
		v.soon(0, 4*grain)
		v.start()
		if n := len(v.holds); n > 2 {
			t.Errorf("one of %d views holds %d blocks", len(views), n)
		}
	}
	close(g.opened)
	got := make([]byte, 4*grain)
	must(t, views[1].read(t.Context(), got, 0))
	for _, v := range views {
		v.close()
	}
	w.settle()
	w.shut(o)
}

// TestEvictedBlocksComeTogether: blocks that were on the disk when they were announced, and are evicted before they are read, are downloaded at the
// same time once the first is missed.
func TestEvictedBlocksComeTogether(t *testing.T) {
	const grain, limit = 2 * disk.Page, 40 * 2 * disk.Page
	w := newWorld(t, t.TempDir(), limit, grain)
	defer w.Close()
	o := w.openNoise(t, "shard", noise(rand.New(rand.NewPCG(1, 8)), 40*grain))
	blocks, p := []int64{3, 13, 23, 33}, make([]byte, grain)
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
	v.start()
	if n := w.source.reads.Load(); n != 4 {
		t.Errorf("%d reads of four blocks", n)
	}
	for w.mu.Lock(); w.evict(); {
	}
	w.mu.Unlock()
	g := newGate()
	w.source.breakBy(g.hold)
	done := beginRead(v, blocks[0], grain)
	g.await(len(blocks))
	close(g.opened)
	must(t, <-done)
	v.close()
	w.settle()
	w.shut(o)
}
