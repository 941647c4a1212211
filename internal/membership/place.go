package membership

import (
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// ID is a searcher's name: Searcher.id in the protos.
type ID = string

// Rank orders members by their claim on a shard, highest first. The order depends
// on the digest and on each member alone, so that a member that leaves changes
// nothing among the others (highest random weight; Thaler and Ravishankar, 1996).
// members must not repeat; their order does not matter.
func Rank(digest [32]byte, members []ID) []ID {
	type claim struct {
		weight uint64
		id     ID
	}
	claims := make([]claim, len(members))
	var hash xxhash.Digest
	for i, id := range members {
		hash.Reset()
		_, _ = hash.Write(digest[:]) // never fails
		_, _ = hash.WriteString(id)
		claims[i] = claim{hash.Sum64(), id}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.id, b.id))
	})
	ranked := make([]ID, len(claims))
	for i, c := range claims {
		ranked[i] = c.id
	}
	return ranked
}

// Place returns the members that hold a shard: the first replication of Rank, or
// all when there are fewer.
func Place(digest [32]byte, members []ID, replication int) []ID {
	ranked := Rank(digest, members)
	return ranked[:max(0, min(replication, len(ranked)))]
}
