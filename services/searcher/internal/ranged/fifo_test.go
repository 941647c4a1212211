package ranged

import (
	"container/list"
	"math/rand/v2"
	"testing"
)

// traced runs a trace of reads against a queue of a number of blocks.
type traced struct {
	fifo   fifo
	blocks map[int]*block
	ghosts map[int]ghost
	room   int
}

func newTraced(room int) *traced {
	return &traced{blocks: make(map[int]*block), ghosts: make(map[int]ghost), room: room}
}

// read uses a block, inserts it if it is missing, and reports whether it was there.
func (tr *traced) read(n int) bool {
	if b := tr.blocks[n]; b != nil {
		b.freq = min(b.freq+1, mostFreq)
		return true
	}
	for len(tr.blocks) >= tr.room {
		gone, g := tr.fifo.evict()
		delete(tr.blocks, int(gone.number))
		tr.ghosts[int(gone.number)] = g
	}
	b := &block{number: uint32(n), size: 1}
	tr.blocks[n] = b
	tr.fifo.insert(b, tr.ghosts[n])
	return false
}

// lru is the same with a queue that evicts the least recently used block.
type lru struct {
	order list.List
	there map[int]*list.Element
	room  int
}

func (l *lru) read(n int) bool {
	e := l.there[n]
	if e != nil {
		l.order.MoveToFront(e)
		return true
	}
	if l.order.Len() >= l.room {
		delete(l.there, l.order.Remove(l.order.Back()).(int))
	}
	l.there[n] = l.order.PushFront(n)
	return false
}

// hits counts the hits of reads of 300 hot blocks, the lower ones hotter. One read in sweep belongs
// to a sweep over cold blocks; 0 means no sweep.
func hits(read func(n int) bool, rng *rand.Rand, sweep int) (hits int) {
	zipf := rand.NewZipf(rng, 1.1, 1, 299)
	cold := 1000
	for i := range 60_000 {
		if sweep > 0 && i%sweep == 0 {
			for range 8 {
				read(cold)
				cold++
			}
		}
		if n := int(zipf.Uint64()); read(n) && i > 10_000 {
			hits++
		}
	}
	return hits
}

// TestSweepLeavesHotBlocks: sweeps of twice as many cold blocks as there are hot reads cost few of
// the hits. They cost an LRU queue many; otherwise the test would show nothing.
func TestSweepLeavesHotBlocks(t *testing.T) {
	for seed := range uint64(5) {
		random := func() *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
		without := hits(newTraced(150).read, random(), 0)
		with := hits(newTraced(150).read, random(), 4)
		last := hits((&lru{there: make(map[int]*list.Element), room: 150}).read, random(), 4)
		t.Logf("seed %d: %d hits without sweeps, %d with, %d of what was used last", seed, without, with, last)
		if with < without*97/100 || last > without*92/100 {
			t.Errorf("seed %d: sweeps take the hits from %d to %d, of what was used last to %d", seed, without, with, last)
		}
	}
}

// TestFollowsWhatIsHot: when other blocks become hot, they are soon cached.
func TestFollowsWhatIsHot(t *testing.T) {
	tr := newTraced(100)
	for range 50 {
		for n := range 80 {
			tr.read(n)
		}
	}
	missed := 0
	for range 50 {
		for n := range 80 {
			if !tr.read(1000 + n) {
				missed++
			}
		}
	}
	if missed > 80*6 {
		t.Errorf("%d reads of 4000 missed after the hot blocks changed", missed)
	}
}

// TestFifoKeepsItsAccounts: over random uses, the counts of the queues match the blocks that were
// inserted and not evicted.
func TestFifoKeepsItsAccounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var q fifo
	held := make(map[*block]bool)
	var ghosts []ghost
	for range 20_000 {
		switch rng.IntN(4) {
		case 0:
			b := &block{size: 1 + rng.Int32N(9)}
			g := ghost(0)
			if len(ghosts) > 0 && rng.IntN(2) == 0 {
				g = ghosts[rng.IntN(len(ghosts))]
			}
			q.insert(b, g)
			held[b] = true
		case 1:
			for b := range held { // any
				b.freq = min(b.freq+1, mostFreq)
				break
			}
		case 2:
			b, g := q.evict()
			if b == nil {
				continue
			}
			if !held[b] {
				t.Fatal("evicted what is not there")
			}
			delete(held, b)
			ghosts = append(ghosts, g)
		case 3:
			if rng.IntN(8) > 0 {
				continue
			}
			for b := range held {
				q.drop(b)
				delete(held, b)
				break
			}
		}
		var sum int64
		for b := range held {
			sum += int64(b.size)
		}
		if q.smallBytes+q.mainBytes != sum || int(q.blocks) != len(held) {
			t.Fatalf("%d bytes and %d blocks are held, the queues say %d and %d", sum, len(held), q.smallBytes+q.mainBytes, q.blocks)
		}
	}
	for range len(held) {
		if b, _ := q.evict(); b == nil {
			t.Fatal("a block is lost")
		}
	}
}
