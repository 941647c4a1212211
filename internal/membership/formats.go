package membership

import (
	"slices"

	"github.com/trawl-search/trawl/index/format"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// ShardFormats returns the versions of the shard format that this program reads.
func ShardFormats() (versions []uint32) {
	for v := format.OldestReadable; v <= format.ReaderVersion; v++ {
		versions = append(versions, v)
	}
	return versions
}

// Reads reports whether a searcher reads shards of a version of the format. A record
// without versions was written by a program that predates the field and reads version 1.
func Reads(s *catalogv1.Searcher, version uint32) bool {
	if len(s.GetShardFormats()) == 0 {
		return version == format.Version1
	}
	return slices.Contains(s.GetShardFormats(), version)
}

// CannotRead returns the searchers that do not read shards of a version of the format, in
// ascending order of id. Draining ones count: they still answer.
func (s *MemberSnapshot) CannotRead(version uint32) (old []*catalogv1.Searcher) {
	for _, m := range s.Searchers {
		if !Reads(m, version) {
			old = append(old, m)
		}
	}
	return old
}
