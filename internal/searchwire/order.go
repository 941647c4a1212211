package searchwire

import (
	"container/heap"

	"github.com/trawl-search/trawl/index/shard"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Key is the file's place in the total order of results.
func Key(f *searchv1.FileMatch) shard.Key {
	return shard.Key{Score: f.Score, Repo: f.Repo, Path: f.Path, Blob: f.Blob}
}

// KeyFromProto is the place that a message names; nil for no message.
func KeyFromProto(k *searchv1.OrderKey) *shard.Key {
	if k == nil {
		return nil
	}
	return &shard.Key{Score: k.Score, Repo: k.Repo, Path: k.Path, Blob: k.Blob}
}

// KeyToProto is the reverse of KeyFromProto.
func KeyToProto(k shard.Key) *searchv1.OrderKey {
	return &searchv1.OrderKey{Score: k.Score, Repo: k.Repo, Path: k.Path, Blob: k.Blob}
}

// Merge merges lists that are each in the total order into one, of at most
// limit files. It takes time for what it returns, not for what it was given.
func Merge(limit int, lists ...[]*searchv1.FileMatch) []*searchv1.FileMatch {
	heads := make(fileHeap, 0, len(lists))
	total := 0
	for _, l := range lists {
		if len(l) > 0 {
			heads = append(heads, l)
			total += len(l)
		}
	}
	heap.Init(&heads)
	merged := make([]*searchv1.FileMatch, 0, min(limit, total))
	for len(heads) > 0 && len(merged) < limit {
		merged = append(merged, heads[0][0])
		if heads[0] = heads[0][1:]; len(heads[0]) == 0 {
			heap.Pop(&heads)
		} else {
			heap.Fix(&heads, 0)
		}
	}
	return merged
}

// fileHeap orders non-empty lists by their first file.
type fileHeap [][]*searchv1.FileMatch

func (h fileHeap) Len() int           { return len(h) }
func (h fileHeap) Less(i, j int) bool { return shard.Compare(Key(h[i][0]), Key(h[j][0])) < 0 }
func (h fileHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *fileHeap) Push(x any)        { *h = append(*h, x.([]*searchv1.FileMatch)) }
func (h *fileHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// LimitBytes leaves out the chunks of files that would take the content of all
// of them over limit. Files and their counts stay.
func LimitBytes(files []*searchv1.FileMatch, limit uint64) {
	var used uint64
	for _, f := range files {
		kept := f.Chunks[:0]
		for _, c := range f.Chunks {
			if size := uint64(len(c.Content)); size <= limit-used {
				used += size
				kept = append(kept, c)
			}
		}
		f.Chunks = kept
	}
}
