package membership

import (
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// ID is a searcher's name: Searcher.id in the protos.
type ID = string

// Member is a searcher that can hold shards.
type Member struct {
	ID ID
	// Zone is a failure domain, such as a zone of a cloud. A member without one counts as
	// alone in its zone.
	Zone string
}

// Rank orders members by their claim on a shard, highest first. Each member has a weight
// that depends on the digest and its id alone (highest random weight; Thaler and
// Ravishankar, 1996). First come the heaviest of each zone in the order of their weights,
// then the second of each zone, and so on. Hence the first k of the rank are spread over
// the zones as evenly as these allow, the very first does not depend on zones, and where
// no two members share a zone the rank is the order of weights.
//
// When a member leaves, one place among the first k changes at most, and only if the
// member was among them; no member that stays leaves the first k. Joining is the
// reverse; a member that changes its zone leaves and joins.
//
// Ids must not repeat; the order of members does not matter.
func Rank(digest [32]byte, members []Member) []ID {
	type claim struct {
		weight uint64
		id     ID
		zone   string
		nth    int // in its zone, from 0
	}
	claims := make([]claim, len(members))
	zoned := false
	var hash xxhash.Digest
	for i, m := range members {
		hash.Reset()
		_, _ = hash.Write(digest[:]) // never fails
		_, _ = hash.WriteString(m.ID)
		claims[i] = claim{weight: hash.Sum64(), id: m.ID, zone: m.Zone}
		zoned = zoned || m.Zone != ""
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.id, b.id))
	})
	if zoned {
		taken := make(map[string]int)
		for i := range claims {
			if c := &claims[i]; c.zone != "" {
				c.nth = taken[c.zone]
				taken[c.zone]++
			}
		}
		slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Compare(a.nth, b.nth) })
	}
	ranked := make([]ID, len(claims))
	for i, c := range claims {
		ranked[i] = c.id
	}
	return ranked
}

// Place returns the members that hold a shard: the first replication members of Rank,
// or all if there are fewer. No two of them share a zone if there are enough zones.
func Place(digest [32]byte, members []Member, replication int) []ID {
	ranked := Rank(digest, members)
	return ranked[:max(0, min(replication, len(ranked)))]
}
