package ranged

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// TestSpaceThatCannotBeFreed: space of blocks that the file system does not take back stays accounted
// for until the shard is closed, and is given back then. The blocks are read anew.
func TestSpaceThatCannotBeFreed(t *testing.T) {
	const grain = 2 * disk.Page
	content := noise(rand.New(rand.NewPCG(1, 7)), 16*grain)
	w := newWorld(t, t.TempDir(), 20*grain, grain)
	defer w.Close()
	o := w.openNoise(t, "shard", content)
	read := func() {
		v := w.view(o)
		defer v.close()
		must(t, v.read(t.Context(), make([]byte, 4*grain), 0))
	}
	read()
	w.settle()
	before := w.budget.Used()
	writable := o.file
	var err error
	o.file, err = os.Open(writable.Name()) // no holes can be made through it
	must(t, err)
	if w.Reserve(20 * grain) {
		t.Error("there is room for what the budget has, and blocks are still on disk")
	}
	checkRoom(t, w)
	if used := w.budget.Used(); used != before {
		t.Errorf("%d bytes are taken of %d that were not freed", used, before)
	}
	must(t, o.file.Close())
	o.file = writable
	read()
	w.settle()
	checkRoom(t, w)
	w.shut(o)
	if used := w.budget.Used(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
}

// TestFileThatWasRemoved: a shard whose file somebody removed is read, evicted and closed as ever.
func TestFileThatWasRemoved(t *testing.T) {
	const grain = 2 * disk.Page
	content := noise(rand.New(rand.NewPCG(2, 7)), 16*grain)
	w := newWorld(t, t.TempDir()+"/cache", 10*grain, grain)
	defer w.Close()
	o := w.openNoise(t, "shard", content)
	v := w.view(o)
	for range 2 {
		for off := int64(0); off < o.Size; off += 4 * grain {
			got := make([]byte, 4*grain)
			must(t, v.read(t.Context(), got, off))
			if !bytes.Equal(got, content[off:off+4*grain]) {
				t.Fatalf("the bytes at %d are not those of the object", off)
			}
		}
		w.settle()
		must(t, os.RemoveAll(w.dir))
	}
	v.close()
	if !w.Reserve(10*grain - overhead(o.Size, grain)) {
		t.Errorf("%d bytes of the budget stay taken", w.budget.Used())
	}
	w.shut(o)
	if used := w.budget.Used(); used != 10*grain-overhead(o.Size, grain) {
		t.Errorf("%d bytes are taken", used)
	}
}
