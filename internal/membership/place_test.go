package membership_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/membership"
)

// members draws distinct ids.
func members(t *rapid.T, least int) []membership.ID {
	return rapid.SliceOfNDistinct(rapid.StringN(1, 12, -1), least, 12, rapid.ID[string]).Draw(t, "members")
}

func digest(t *rapid.T) [32]byte {
	return sha256.Sum256(rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "content"))
}

func TestRankIsAPermutationWhateverTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids, d := members(t, 0), digest(t)
		ranked := membership.Rank(d, ids)
		if !slices.Equal(slices.Sorted(slices.Values(ranked)), slices.Sorted(slices.Values(ids))) {
			t.Fatalf("ranked %q of %q", ranked, ids)
		}
		shuffled := rapid.Permutation(ids).Draw(t, "shuffled")
		if again := membership.Rank(d, shuffled); !slices.Equal(again, ranked) {
			t.Fatalf("%q in another order ranks as %q, not %q", ids, again, ranked)
		}
	})
}

// A member that comes or goes changes nothing among the others: no shard moves
// between two that stay.
func TestMinimalMovement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids, d := members(t, 2), digest(t)
		replication := rapid.IntRange(1, 4).Draw(t, "replication")
		gone := rapid.SampledFrom(ids).Draw(t, "gone")
		isGone := func(id membership.ID) bool { return id == gone }
		fewer := slices.DeleteFunc(slices.Clone(ids), isGone)
		want := slices.DeleteFunc(membership.Rank(d, ids), isGone)
		if got := membership.Rank(d, fewer); !slices.Equal(got, want) {
			t.Fatalf("without %q the rank is %q, want %q", gone, got, want)
		}
		before, after := membership.Place(d, ids, replication), membership.Place(d, fewer, replication)
		for _, id := range before {
			if id != gone && !slices.Contains(after, id) {
				t.Fatalf("%q lost the shard because %q went", id, gone)
			}
		}
		if moved := len(after) - len(intersect(before, after)); !slices.Contains(before, gone) && moved != 0 || moved > 1 {
			t.Fatalf("%d replicas moved", moved)
		}
	})
}

func intersect(a, b []membership.ID) []membership.ID {
	return slices.DeleteFunc(slices.Clone(a), func(id membership.ID) bool { return !slices.Contains(b, id) })
}

func TestPlaceTakesTheFirstOfTheRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids, d := members(t, 0), digest(t)
		replication := rapid.IntRange(-1, 15).Draw(t, "replication")
		want := max(0, min(replication, len(ids)))
		if got := membership.Place(d, ids, replication); !slices.Equal(got, membership.Rank(d, ids)[:want]) {
			t.Fatalf("replication %d of %d members: %q", replication, len(ids), got)
		}
	})
}

// Shards spread evenly, and so do the second replicas of one member's shards:
// when it goes, all others share its load.
func TestBalance(t *testing.T) {
	const shards, n = 20_000, 8
	ids := make([]membership.ID, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("searcher-%d", i)
	}
	first, second := map[membership.ID]int{}, map[membership.ID]int{}
	for i := range shards {
		placed := membership.Place(sha256.Sum256(fmt.Append(nil, i)), ids, 2)
		first[placed[0]]++
		if placed[0] == ids[0] {
			second[placed[1]]++
		}
	}
	even := func(what string, counts map[membership.ID]int, total, over int) {
		mean := float64(total) / float64(over)
		for _, id := range ids {
			// Five standard deviations: the digests are fixed, so this never flickers.
			if c, ok := counts[id]; ok && math.Abs(float64(c)-mean) > 5*math.Sqrt(mean) {
				t.Errorf("%s: %s has %d, the mean is %.0f", what, id, c, mean)
			}
		}
		if len(counts) != over {
			t.Errorf("%s: spread over %d, want %d", what, len(counts), over)
		}
	}
	even("first replicas", first, shards, n)
	even("heirs of one member", second, first[ids[0]], n-1)
}
