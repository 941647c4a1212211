package words

import "slices"

// Postings are collected in groups of words with successive numbers, in the same way as package
// postings collects those of n-grams: each posting is written once, in sequence, and sorted within
// its group when the index is written.
const (
	groupBits    = 10
	groupSize    = 1 << groupBits
	chunkEntries = 512
	slabChunks   = 256 // 1 MiB
)

// An entry has, from the lowest bit on: how often the word starts in the superblock, whether it is
// defined there, the mask of the blocks, the superblock, and the low bits of the word's number.
const (
	countBits      = 13
	definedShift   = countBits
	maskShift      = definedShift + 1
	superblockAt   = maskShift + 8
	superblockBits = 32
	numberAt       = superblockAt + superblockBits
)

type chunk [chunkEntries]uint64

// group has the entries of its words: in the order of arrival, or, once sorted, by word and
// superblock.
type group struct {
	n      int
	last   *chunk
	chunks []*chunk
}

// runs are the postings of all words: a run of entries for each.
type runs struct {
	groups []group
	slabs  []*[slabChunks]chunk
	used   int      // chunks
	starts []uint32 // start of each word's run in its group, once sorted
	sorted []uint64
}

func (r *runs) add(number, superblock uint32, mask uint8, count uint16, defined bool) {
	for int(number>>groupBits) >= len(r.groups) {
		if cap(r.groups) > len(r.groups) {
			r.groups = r.groups[:len(r.groups)+1] // reuses its memory, see reset
		} else {
			r.groups = append(r.groups, group{})
		}
	}
	g := &r.groups[number>>groupBits]
	at := g.n % chunkEntries
	if at == 0 {
		r.extend(g)
	}
	entry := uint64(number%groupSize)<<numberAt | uint64(superblock)<<superblockAt | uint64(mask)<<maskShift | uint64(count)
	if defined {
		entry |= 1 << definedShift
	}
	g.last[at] = entry
	g.n++
}

func (r *runs) extend(g *group) {
	if r.used/slabChunks == len(r.slabs) {
		r.slabs = append(r.slabs, new([slabChunks]chunk))
	}
	g.last = &r.slabs[r.used/slabChunks][r.used%slabChunks]
	g.chunks = append(g.chunks, g.last)
	r.used++
}

// memory returns how many bytes the entries take.
func (r *runs) memory() int64 { return int64(r.used) * chunkEntries * 8 }

// sort sorts the entries of that many words, group by group, in place.
func (r *runs) sort(words int) {
	r.starts = append(r.starts[:0], make([]uint32, words+1)...)
	for i := range r.groups {
		r.sortGroup(&r.groups[i], r.starts[i*groupSize:min((i+1)*groupSize, words)])
	}
}

// sortGroup sorts a group by word. Its superblocks ascend already.
func (r *runs) sortGroup(g *group, starts []uint32) {
	if len(r.sorted) < g.n {
		r.sorted = make([]uint64, g.n+g.n/4)
	}
	for i, c := range g.chunks {
		for _, entry := range c[:min(g.n-i*chunkEntries, chunkEntries)] {
			starts[entry>>numberAt]++
		}
	}
	sum := uint32(0)
	for i, n := range starts {
		starts[i] = sum
		sum += n
	}
	for i, c := range g.chunks {
		for _, entry := range c[:min(g.n-i*chunkEntries, chunkEntries)] {
			at := &starts[entry>>numberAt]
			r.sorted[*at] = entry
			*at++
		}
	}
	for i, c := range g.chunks {
		copy(c[:], r.sorted[i*chunkEntries:min(g.n, (i+1)*chunkEntries)])
	}
	copy(starts[1:], starts) // the end of a run is the start of the next one
	if len(starts) > 0 {
		starts[0] = 0
	}
}

// run has the postings of one word.
type run struct {
	superblocks []uint32
	masks       []uint8
	counts      []uint16
	defined     []bool
}

// fetch reads the first posting of a word early, so that read need not wait for memory: see
// table.fetch.
func (r *runs) fetch(number uint32) uint32 {
	g, start := &r.groups[number>>groupBits], r.starts[number]
	return uint32(g.chunks[start/chunkEntries][start%chunkEntries])
}

// read replaces the content of a run by the postings of a word.
func (r *runs) read(to *run, number uint32) {
	g := &r.groups[number>>groupBits]
	start, end := int(r.starts[number]), g.n
	if next := number + 1; next%groupSize != 0 && int(next) < len(r.starts)-1 {
		end = int(r.starts[next])
	}
	to.resize(end - start)
	for done := 0; start < end; {
		at := start % chunkEntries
		entries := g.chunks[start/chunkEntries][at:min(chunkEntries, at+end-start)]
		n := len(entries)
		superblocks, masks := to.superblocks[done:done+n], to.masks[done:done+n]
		counts, defined := to.counts[done:done+n], to.defined[done:done+n]
		for i, entry := range entries {
			superblocks[i] = uint32(entry >> superblockAt)
			masks[i] = uint8(entry >> maskShift)
			counts[i] = uint16(entry % (1 << countBits))
			defined[i] = entry>>definedShift&1 == 1
		}
		start, done = start+n, done+n
	}
}

// resize makes room for n postings.
func (r *run) resize(n int) {
	r.superblocks, r.masks = slices.Grow(r.superblocks[:0], n)[:n], slices.Grow(r.masks[:0], n)[:n]
	r.counts, r.defined = slices.Grow(r.counts[:0], n)[:n], slices.Grow(r.defined[:0], n)[:n]
}

// reset drops all postings and keeps the memory.
func (r *runs) reset() {
	for i := range r.groups {
		r.groups[i].n, r.groups[i].chunks = 0, r.groups[i].chunks[:0]
	}
	r.groups, r.used = r.groups[:0], 0
}
