package compact

import (
	"slices"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// combine makes one shard of those of a root that keys name, and returns its
// reference, which says what the root has of it and lacks the object. What was
// merged from deltas alone is one; bases stand before deltas.
func combine(root *catalogv1.Root, keys []string) *catalogv1.ShardRef {
	made := &catalogv1.ShardRef{Delta: true, Compacted: true}
	var bases, deltas []*catalogv1.ShardRef
	silent := false // a shard that names no language does not tell
	for _, ref := range root.GetShards() {
		if slices.Contains(keys, ref.GetKey()) {
			made.Delta = made.Delta && ref.GetDelta()
			made.LiveDocuments += liveDocuments(ref)
			made.LiveContentBytes += liveContent(ref)
			made.LiveSkippedDocuments += ref.GetLiveSkippedDocuments()
			made.Languages = append(made.Languages, ref.GetLanguages()...)
			silent = silent || len(ref.GetLanguages()) == 0 && ref.GetDocuments() > 0
			continue
		}
		if ref.GetDelta() {
			deltas = append(deltas, ref)
		} else {
			bases = append(bases, ref)
		}
	}
	slices.Sort(made.Languages)
	if made.Languages = slices.Compact(made.Languages); silent {
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
