package ranged

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// TestTheOldestNeverGivesWay: searches take all the room together, and each needs more. Some give way,
// younger ones first, until the others can go on. The oldest is never among them.
func TestTheOldestNeverGivesWay(t *testing.T) {
	const grain, searches = 2 * disk.Page, 4
	content := noise(rand.New(rand.NewPCG(1, 6)), 16*grain)
	for oldest := range searches {
		w := newWorld(t, t.TempDir(), overhead(16*grain, grain)+searches*grain, grain)
		o, err := w.open(w.put(t, "shard", content))
		must(t, err)
		var views []*view
		for i := range searches {
			v := w.view(o, uint64((i-oldest+searches)%searches))
			must(t, v.fill(t.Context(), int64(i)*4*grain, grain))
			views = append(views, v)
		}
		crowded := make([]bool, searches)
		var searching sync.WaitGroup
		for i, v := range views {
			searching.Go(func() {
				defer v.close()
				err := v.fill(t.Context(), int64(i)*4*grain+2*grain, grain)
				if crowded[i] = errors.Is(err, errCrowded); err != nil && !crowded[i] {
					t.Error(err)
				}
			})
		}
		searching.Wait()
		if crowded[oldest] || !slices.Contains(crowded, true) {
			t.Errorf("%v gave way, the oldest is %d", crowded, oldest)
		}
		w.mu.Lock()
		w.leave(o)
		w.mu.Unlock()
		w.Close()
	}
}

// TestSpaceThatCannotBeFreed: space of blocks that the file system does not take back stays accounted
// for until the shard is closed, and is given back then. The blocks are read anew.
func TestSpaceThatCannotBeFreed(t *testing.T) {
	const grain = 2 * disk.Page
	content := noise(rand.New(rand.NewPCG(1, 7)), 16*grain)
	w := newWorld(t, t.TempDir(), 20*grain, grain)
	defer w.Close()
	o, err := w.open(w.put(t, "shard", content))
	must(t, err)
	read := func(blocks int64) error {
		v := w.view(o, 1)
		defer v.close()
		u := &used{view: v, whole: content, ranges: [][2]int64{{0, blocks * grain}}}
		return errors.Join(v.fill(context.Background(), 0, blocks*grain), u.sound())
	}
	must(t, read(4))
	before := w.budget.Used()
	must(t, os.Rename(o.path, o.path+".away"))
	if w.Reserve(20 * grain) {
		t.Error("there is room for what the budget has, and blocks are still on disk")
	}
	checkRoom(t, w)
	if used := w.budget.Used(); used != before {
		t.Errorf("%d bytes are taken of %d that were not freed", used, before)
	}
	if err := read(1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a read without the file: %v", err)
	}
	must(t, os.Rename(o.path+".away", o.path))
	must(t, read(4))
	checkRoom(t, w)
	w.mu.Lock()
	w.leave(o)
	w.mu.Unlock()
	if used := w.budget.Used(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
}
