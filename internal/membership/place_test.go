package membership_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/membership"
)

// members draws members of few zones, some of no zone, with distinct ids.
func members(t *rapid.T, least int) []membership.Member {
	zones := rapid.SampledFrom([][]string{{""}, {"x"}, {"x", "y"}, {"x", "y", "z"}, {"", "x", "y"}}).Draw(t, "zones")
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) membership.Member {
		return membership.Member{ID: rapid.StringN(1, 12, -1).Draw(t, "id"), Zone: rapid.SampledFrom(zones).Draw(t, "zone")}
	}), least, 12, func(m membership.Member) string { return m.ID }).Draw(t, "members")
}

func idsOf(members []membership.Member) (ids []membership.ID) {
	for _, m := range members {
		ids = append(ids, m.ID)
	}
	return ids
}

// byWeight is the rank in programs without zones.
func byWeight(digest [32]byte, members []membership.Member) []membership.ID {
	weight := func(id string) uint64 { return xxhash.Sum64(append(digest[:], id...)) }
	return slices.SortedFunc(slices.Values(idsOf(members)), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b))
	})
}

func digest(t *rapid.T) [32]byte {
	return sha256.Sum256(rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "content"))
}

func TestRankIsAPermutationWhateverTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids, d := members(t, 0), digest(t)
		ranked := membership.Rank(d, ids)
		if !slices.Equal(slices.Sorted(slices.Values(ranked)), slices.Sorted(slices.Values(idsOf(ids)))) {
			t.Fatalf("ranked %q of %q", ranked, ids)
		}
		shuffled := rapid.Permutation(ids).Draw(t, "shuffled")
		if again := membership.Rank(d, shuffled); !slices.Equal(again, ranked) {
			t.Fatalf("%q in another order ranks as %q, not %q", ids, again, ranked)
		}
	})
}

// When members leave, no shard moves between two that stay, and each replica of a member
// that left moves to one other member. Joining is the reverse.
func TestMinimalMovement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, d := members(t, 2), digest(t)
		replication := rapid.IntRange(1, 5).Draw(t, "replication")
		one := rapid.SampledFrom(all).Draw(t, "gone")
		wholeZone := one.Zone != "" && rapid.Bool().Draw(t, "its whole zone goes")
		isGone := func(m membership.Member) bool { return m.ID == one.ID || wholeZone && m.Zone == one.Zone }
		fewer := slices.DeleteFunc(slices.Clone(all), isGone)
		before, after := membership.Place(d, all, replication), membership.Place(d, fewer, replication)
		lost := 0
		for _, m := range all {
			switch had := slices.Contains(before, m.ID); {
			case had && isGone(m):
				lost++
			case had && !slices.Contains(after, m.ID):
				t.Fatalf("%q lost the shard because others went: %q, %q", m.ID, before, after)
			}
		}
		if moved := len(after) - len(intersect(before, after)); moved > lost {
			t.Fatalf("%d replicas moved, %d were on members that went: %q, %q", moved, lost, before, after)
		}
	})
}

// Replicas are spread over the zones: as many zones as possible have one, and a zone has
// two more than another only if that has no members left.
func TestZonesShareReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, d := members(t, 1), digest(t)
		replication := rapid.IntRange(1, 12).Draw(t, "replication")
		zone, size := map[membership.ID]string{}, map[string]int{}
		for _, m := range all {
			zone[m.ID] = m.Zone
			if m.Zone == "" {
				zone[m.ID] = "of " + m.ID // a zone of its own
			}
			size[zone[m.ID]]++
		}
		replicas := map[string]int{}
		for _, id := range membership.Place(d, all, replication) {
			replicas[zone[id]]++
		}
		if want := min(replication, len(size)); len(replicas) != want {
			t.Fatalf("replicas in %d zones, want %d: %v of %v", len(replicas), want, replicas, size)
		}
		for y := range size {
			for z := range size {
				if replicas[z] > replicas[y]+1 && replicas[y] < size[y] {
					t.Fatalf("%q has %d replicas, %q has %d of %d members", z, replicas[z], y, replicas[y], size[y])
				}
			}
		}
	})
}

// Members without a zone, and members that are each alone in a zone, rank as in programs
// without zones: an upgrade moves nothing.
func TestRankWithoutZonesIsByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, d := members(t, 0), digest(t)
		named := rapid.Bool().Draw(t, "each in a zone of its own")
		for i := range all {
			all[i].Zone = ""
			if named {
				all[i].Zone = fmt.Sprint("zone", i)
			}
		}
		if got, want := membership.Rank(d, all), byWeight(d, all); !slices.Equal(got, want) {
			t.Fatalf("rank %q, by weight %q", got, want)
		}
	})
}

// The first replica does not depend on zones: programs with and without zones agree on
// one searcher for each shard, which holds the shard whichever of the two it runs.
func TestFirstReplicaIgnoresZones(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, d := members(t, 1), digest(t)
		if got, want := membership.Rank(d, all)[0], byWeight(d, all)[0]; got != want {
			t.Fatalf("%q is first, %q without zones", got, want)
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
	all := make([]membership.Member, n)
	for i := range all {
		all[i].ID = fmt.Sprintf("searcher-%d", i)
	}
	ids := idsOf(all)
	first, second := map[membership.ID]int{}, map[membership.ID]int{}
	for i := range shards {
		placed := membership.Place(sha256.Sum256(fmt.Append(nil, i)), all, 2)
		first[placed[0]]++
		if placed[0] == ids[0] {
			second[placed[1]]++
		}
	}
	even := func(what string, counts map[membership.ID]int, total, over int) {
		mean := float64(total) / float64(over)
		for _, id := range ids {
			// Five standard deviations: the digests are fixed, so this is never flaky.
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
