package search

import (
	"slices"
	"sort"
)

// Ranking ranks the hits of several shards together. The best files are the first ones in the total
// order, within a number of files and a number of bytes, but at least one. It is not safe for
// concurrent use.
type Ranking struct {
	limit    int
	maxBytes int64

	stats []Stats // of each part
	files []ranked
	// bound is the place from which on, or after which, files of the best have been left out. No later
	// file can be returned, since others before it are missing. Nil means that there is no such place.
	bound *Key
}

// ranked is one of the best hits. Until it is shown, size is its least possible size.
type ranked struct {
	key  Key
	part int
	size int64
	file *FileMatch
}

// NewRanking returns a ranking of up to maxFiles files and maxBytes bytes; 0 bytes means no bound.
func NewRanking(maxFiles int, maxBytes int64) *Ranking {
	return &Ranking{limit: maxFiles, maxBytes: maxBytes}
}

// Floor returns Options.Floor for the next shard: nil while there is room for more files.
func (r *Ranking) Floor() *Key {
	if n := len(r.files); n > 0 && n == r.limit {
		last := r.files[n-1].key
		return &last
	}
	return r.bound
}

// Add ranks the hits that Find found in a shard. It returns the number of this part of the ranking,
// counted from 0.
func (r *Ranking) Add(found *Found) (part int) {
	part = len(r.stats)
	r.stats = append(r.stats, found.Stats)
	r.merge(found.Hits, part)
	if found.Cut {
		r.cutAfter(found.Hits[len(found.Hits)-1].Key)
	}
	r.trim()
	return part
}

// merge merges hits into the files.
func (r *Ranking) merge(hits []Hit, part int) {
	before := r.files
	if len(hits) == 0 {
		return
	}
	r.files = make([]ranked, 0, min(r.limit, len(before)+len(hits)))
	for range cap(r.files) {
		if len(hits) == 0 || len(before) > 0 && Compare(before[0].key, hits[0].Key) <= 0 {
			r.files, before = append(r.files, before[0]), before[1:]
		} else {
			r.files = append(r.files, ranked{key: hits[0].Key, part: part, size: hits[0].hit.leastSize()})
			hits = hits[1:]
		}
	}
	if r.bound != nil {
		r.cutAfter(*r.bound)
	}
}

// Count returns how many hits of a part are among the best. These are its first ones.
func (r *Ranking) Count(part int) (n int) {
	for i := range r.files {
		if r.files[i].part == part {
			n++
		}
	}
	return n
}

// Shown takes the result of Show for the first hits of a part, as many as Count returned. Hits that
// were not shown in time are no longer among the best.
func (r *Ranking) Shown(part int, shown *Result) {
	r.stats[part].Add(shown.Stats)
	files := shown.Files
	for i := range r.files {
		f := &r.files[i]
		if f.part != part {
			continue
		}
		if len(files) == 0 {
			if shown.Cut && i > 0 {
				r.cutAfter(r.files[i-1].key)
			}
			break
		}
		f.file, f.size = &files[0], files[0].Size()
		files = files[1:]
	}
	r.forget(part)
	r.trim()
}

// Drop removes the files and statistics of a part that turned out to be unreadable.
func (r *Ranking) Drop(part int) {
	r.stats[part] = Stats{}
	r.forget(part)
}

// forget removes the files of a part that are not shown. The limit may have left out files that
// would take their place. These are not available any more, so the answer ends where they would
// begin.
func (r *Ranking) forget(part int) {
	n := len(r.files)
	if n == 0 {
		return
	}
	last := r.files[n-1].key
	r.files = slices.DeleteFunc(r.files, func(f ranked) bool { return f.part == part && f.file == nil })
	if n == r.limit && len(r.files) < n {
		r.cutAfter(last)
	}
}

// trim removes the first file that has no room, and all after it. Other shards may still have smaller
// files that come before that file, and take its room.
func (r *Ranking) trim() {
	var size int64
	for i := range r.files {
		if size += r.files[i].size; r.maxBytes > 0 && size > r.maxBytes && i > 0 {
			r.cutAfter(r.files[i].key)
			r.files[i] = ranked{}
			r.files = r.files[:i]
			return
		}
	}
}

// cutAfter removes the files after a place.
func (r *Ranking) cutAfter(place Key) {
	if r.bound == nil || Compare(place, *r.bound) < 0 {
		r.bound = &place
	}
	n := sort.Search(len(r.files), func(i int) bool { return Compare(r.files[i].key, *r.bound) > 0 })
	clear(r.files[n:])
	r.files = r.files[:n]
}

// Result returns what was found and shown in all parts.
func (r *Ranking) Result() *Result {
	res := &Result{Files: make([]FileMatch, 0, len(r.files))}
	for _, stats := range r.stats {
		res.Stats.Add(stats)
	}
	for i := range r.files {
		if f := r.files[i].file; f != nil {
			res.Files = append(res.Files, *f)
		}
	}
	res.Cut = r.bound != nil && len(res.Files) < r.limit
	return res
}
