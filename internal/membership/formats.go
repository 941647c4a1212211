package membership

import (
	"slices"

	"github.com/trawl-search/trawl/index/format"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// ShardFormats returns the versions of the shard format that this program reads.
func ShardFormats() []uint32 { return []uint32{format.Version} }

// CannotRead returns the searchers that do not read shards of a version of the format, in
// ascending order of id. Draining ones count: they still answer.
func (s *MemberSnapshot) CannotRead(version uint32) (found []*catalogv1.Searcher) {
	for _, m := range s.Searchers {
		if !slices.Contains(m.GetShardFormats(), version) {
			found = append(found, m)
		}
	}
	return found
}
