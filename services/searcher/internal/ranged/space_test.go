package ranged

import (
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
	must(t, os.Rename(o.file.Name(), o.file.Name()+".away"))
	if w.Reserve(20 * grain) {
		t.Error("there is room for what the budget has, and blocks are still on disk")
	}
	checkRoom(t, w)
	if used := w.budget.Used(); used != before {
		t.Errorf("%d bytes are taken of %d that were not freed", used, before)
	}
	must(t, os.Rename(o.file.Name()+".away", o.file.Name()))
	read()
	w.settle()
	checkRoom(t, w)
	w.shut(o)
	if used := w.budget.Used(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
}
