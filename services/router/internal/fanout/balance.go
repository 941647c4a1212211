package fanout

import (
	"cmp"
	"math"
	"slices"
)

// slack is how many times the average load a searcher may have before a shard goes to
// its next replica: Mirrokni, Thorup and Zadimoghaddam, Consistent Hashing with
// Bounded Loads, 2016. A small slack keeps the load even; a large
// one mostly sends a shard to the searcher that has it in memory.
const slack = 1.25

// balance divides the shards of a round among the searchers that hold them. The load of
// a searcher is the number of shards in this router's calls to it.
type balance struct {
	loads map[string]int
	// most is the limit of the load of a searcher. Those in the router's zone share the shards that they hold among
	// themselves, so their limit is near: routers in other zones ask the others.
	most, near int
	// preferred are the searchers in the router's zone that are not slower than is usual.
	preferred map[string]bool
}

func newBalance(p *Peers, tasks []*task) *balance {
	b := &balance{loads: make(map[string]int), preferred: make(map[string]bool)}
	total, near := len(tasks), 0
	for _, t := range tasks {
		held := false
		for _, c := range t.holders() {
			if _, known := b.loads[c.ID]; !known {
				b.loads[c.ID] = int(p.of(c).asked.Load())
				total += b.loads[c.ID]
				if c.Near && !p.slow(c) {
					b.preferred[c.ID] = true
					near += b.loads[c.ID]
				}
			}
			held = held || b.preferred[c.ID]
		}
		if held {
			near++
		}
	}
	b.most, b.near = limit(total, len(b.loads)), limit(near, len(b.preferred))
	return b
}

// limit is the most shards that each of some searchers may have of a total.
func limit(total, searchers int) int {
	return int(math.Ceil(slack * float64(total) / float64(max(searchers, 1))))
}

// choose picks, among the permitted candidates, the first preferred holder below its load limit,
// else the first holder below the load limit,
// else the holder with the least load, else the first candidate. If none is permitted
// it picks the first candidate: a call that may fail is better than none.
func (b *balance) choose(t *task, permitted func(Target) bool) Target {
	chosen := t.candidates[0]
	if i := slices.IndexFunc(t.holders(), func(c Target) bool { return b.preferred[c.ID] && b.loads[c.ID] < b.near && permitted(c) }); i >= 0 {
		chosen = t.candidates[i]
	} else if i := slices.IndexFunc(t.holders(), func(c Target) bool { return b.loads[c.ID] < b.most && permitted(c) }); i >= 0 {
		chosen = t.candidates[i]
	} else if idle, ok := b.idlest(t.holders()); ok && permitted(idle) {
		chosen = idle
	} else if i := slices.IndexFunc(t.candidates, permitted); i >= 0 {
		chosen = t.candidates[i]
	}
	b.loads[chosen.ID]++
	return chosen
}

func (b *balance) idlest(holders []Target) (Target, bool) {
	if len(holders) == 0 {
		return Target{}, false
	}
	return slices.MinFunc(holders, func(x, y Target) int { return cmp.Compare(b.loads[x.ID], b.loads[y.ID]) }), true
}
