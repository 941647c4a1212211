package shard

import "slices"

// Ranking ranks the hits of several shards among each other: the best files of all are the
// first ones in the total order, up to a number, and up to a number of bytes by their sizes
// but one at least. It must not be used concurrently.
type Ranking struct {
	limit    int
	maxBytes int64

	stats []Stats // of each part
	files []ranked
	// bound is the place after which files were left out that may belong to the best: none
	// that come later can be returned, since others are missing before them. Nil: no such place.
	bound *Key
}

// ranked is one of the best hits. Its size is the least that it can have, until it is shown.
type ranked struct {
	key  Key
	part int
	size int64
	file *FileMatch
}

// NewRanking ranks up to that many files, of that many bytes; 0 bytes are no bound.
func NewRanking(maxFiles int, maxBytes int64) *Ranking {
	return &Ranking{limit: maxFiles, maxBytes: maxBytes}
}

// Floor is what Options.Floor is for the next shard: nil while there are fewer files than wanted.
func (r *Ranking) Floor() *Key {
	switch {
	case r.bound != nil:
		return r.bound
	case r.limit == 0 || len(r.files) < r.limit:
		return nil
	}
	last := r.files[r.limit-1].key
	return &last
}

// Add ranks what Find found in a shard, which is a part of the ranking by the number that
// it returns. Parts count from 0.
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

// merge puts hits among the files.
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
			r.files = append(r.files, ranked{key: hits[0].Key, part: part, size: hits[0].LeastSize()})
			hits = hits[1:]
		}
	}
	if r.bound != nil {
		r.cutAfter(*r.bound)
	}
}

// Count is how many of the hits of a part are among the best: its first ones.
func (r *Ranking) Count(part int) (n int) {
	for i := range r.files {
		if r.files[i].part == part {
			n++
		}
	}
	return n
}

// Shown takes what Show made of as many hits of a part as Count said. Those that were not
// shown in time are no more among the best.
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

// Drop leaves a part out that turned out not to be readable: its files and its statistics.
func (r *Ranking) Drop(part int) {
	r.stats[part] = Stats{}
	r.forget(part)
}

// forget removes the files of a part that are not shown. Those that were left out because
// there were as many before them as are wanted are missing now, so that the answer ends
// where they would begin.
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

// trim leaves out the files that there is no room for.
func (r *Ranking) trim() {
	var size int64
	for i := range r.files {
		if size += r.files[i].size; r.maxBytes > 0 && size > r.maxBytes && i > 0 {
			r.cutAfter(r.files[i-1].key)
			return
		}
	}
}

// cutAfter leaves out the files after a place.
func (r *Ranking) cutAfter(place Key) {
	if r.bound == nil || Compare(place, *r.bound) < 0 {
		r.bound = &place
	}
	n, _ := slices.BinarySearchFunc(r.files, *r.bound, func(f ranked, bound Key) int {
		if Compare(f.key, bound) <= 0 {
			return -1
		}
		return 1
	})
	clear(r.files[n:])
	r.files = r.files[:n]
}

// Result is what was found and shown of all parts.
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
