package postings

import (
	"math/rand/v2"
	"testing"
)

// Chains of many lengths, through several slabs and with dirty memory, give back what
// was added.
func TestChainsAcrossSlabs(t *testing.T) {
	random := newRandom(t)
	var p chunkPool
	for range 3 {
		p.reset()
		checkChains(t, &p, random)
		if len(p.slabs) < 3 {
			t.Fatalf("only %d slabs were used", len(p.slabs))
		}
	}
}

func checkChains(t *testing.T, p *chunkPool, random *rand.Rand) {
	t.Helper()
	chains := make([]chain, 2000)
	superblocks, masks := make([][]uint32, len(chains)), make([][]uint8, len(chains))
	next := uint32(0)
	for range 700_000 {
		next += 1 + random.Uint32N(2)*random.Uint32N(4000)
		i := int(random.Float64() * random.Float64() * random.Float64() * float64(len(chains)))
		mask := uint8(random.Uint32())
		chains[i].add(p, next, mask)
		superblocks[i], masks[i] = append(superblocks[i], next), append(masks[i], mask)
	}
	for i := range chains {
		c := &chains[i]
		if int(c.df) != len(superblocks[i]) {
			t.Fatalf("chain %d has %d postings, want %d", i, c.df, len(superblocks[i]))
		}
		if c.df == 0 {
			continue
		}
		gotSuperblocks, gotMasks := make([]uint32, c.df), make([]uint8, c.df)
		c.collect(p, gotSuperblocks, gotMasks)
		for j := range gotMasks {
			if gotSuperblocks[j] != superblocks[i][j] || gotMasks[j] != masks[i][j] {
				t.Fatalf("posting %d of chain %d is %d %08b, want %d %08b", j, i, gotSuperblocks[j], gotMasks[j], superblocks[i][j], masks[i][j])
			}
		}
	}
}
