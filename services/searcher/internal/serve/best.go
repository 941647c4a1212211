package serve

import (
	"slices"
	"sync"

	"github.com/trawl-search/trawl/index/shard"
)

// best are the first files, in the total order, of the shards searched so far: up to
// limit, and up to maxBytes by their sizes, but one at least. It is safe for concurrent
// use; files and stats are read when nobody adds any more.
type best struct {
	limit    int
	maxBytes int64

	mu    sync.Mutex
	files []shard.FileMatch
	stats shard.Stats
	// size of the files, at most.
	size int64
	// bound is the place after which files were left out for want of bytes: none that
	// come later can be returned, since others are missing before them. Nil: no such place.
	bound *shard.Key
}

// floor is the place after which files are of no use any more, nil when there is none yet.
func (b *best) floor() *shard.Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound != nil {
		return b.bound
	}
	return shard.Floor(b.limit, b.files)
}

// add takes what was found in one shard.
func (b *best) add(r *shard.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Add(r.Stats)
	if r.Cut {
		b.leaveOutAfter(r.Files[len(r.Files)-1].Key())
	}
	b.files = shard.Merge(b.limit, b.files, r.Files)
	if b.bound != nil {
		n, _ := slices.BinarySearchFunc(b.files, *b.bound, func(f shard.FileMatch, bound shard.Key) int {
			if shard.Compare(f.Key(), bound) <= 0 {
				return -1
			}
			return 1
		})
		b.keep(n)
	}
	for i := range r.Files {
		b.size += r.Files[i].Size()
	}
	b.trim()
}

// trim leaves out the files that there is no room for.
func (b *best) trim() {
	if b.maxBytes == 0 || b.size <= b.maxBytes {
		return
	}
	var size int64
	for i := range b.files {
		more := b.files[i].Size()
		if size+more > b.maxBytes && i > 0 {
			b.leaveOutAfter(b.files[i-1].Key())
			b.keep(i)
			break
		}
		size += more
	}
	b.size = size
}

func (b *best) leaveOutAfter(place shard.Key) {
	if b.bound == nil || shard.Compare(place, *b.bound) < 0 {
		b.bound = &place
	}
}

// keep keeps the first n files.
func (b *best) keep(n int) {
	clear(b.files[n:])
	b.files = b.files[:n]
}

// cut reports whether files that the limit has room for are left out.
func (b *best) cut() bool { return b.bound != nil && len(b.files) < b.limit }
