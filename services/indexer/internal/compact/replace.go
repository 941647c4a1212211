package compact

import (
	"slices"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// combine replaces the shards of a root that keys name by one, and returns its
// reference. The reference counts the root's documents; the caller adds the object's
// key, digest and size. A shard merged from deltas alone is a delta. In the root,
// bases stand before deltas.
func combine(root *catalogv1.Root, keys []string) *catalogv1.ShardRef {
	made := &catalogv1.ShardRef{Delta: true, Compacted: true}
	var bases, deltas []*catalogv1.ShardRef
	unknown := false // a shard with documents may name no languages
	for _, ref := range root.GetShards() {
		if slices.Contains(keys, ref.GetKey()) {
			made.Delta = made.Delta && ref.GetDelta()
			made.LiveDocuments += ref.GetLiveDocuments()
			made.LiveContentBytes += ref.GetLiveContentBytes()
			made.LiveSkippedDocuments += ref.GetLiveSkippedDocuments()
			made.Languages = append(made.Languages, ref.GetLanguages()...)
			unknown = unknown || len(ref.GetLanguages()) == 0 && ref.GetDocuments() > 0
			continue
		}
		if ref.GetDelta() {
			deltas = append(deltas, ref)
		} else {
			bases = append(bases, ref)
		}
	}
	slices.Sort(made.Languages)
	if made.Languages = slices.Compact(made.Languages); unknown {
		made.Languages = nil
	}
	if made.Delta {
		deltas = append([]*catalogv1.ShardRef{made}, deltas...)
	} else {
		bases = append(bases, made)
	}
	root.Shards = slices.Concat(bases, deltas)
	return made
}
