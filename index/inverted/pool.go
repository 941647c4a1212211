package inverted

import (
	"iter"
	"slices"
	"unsafe"
)

// Postings are collected in groups of terms with successive numbers. Groups are few enough that all
// their ends stay in the cache, and small enough that sorting one by term, once, when the index is
// written, stays in the cache, too. So each posting is written twice, and never far away.
const (
	groupBits    = 10
	groupSize    = 1 << groupBits
	chunkEntries = 512
	slabChunks   = 256
)

// entry is a posting. Its highest groupBits bits are the lowest ones of the number of its term.
type entry interface{ uint32 | uint64 }

type chunk[E entry] [chunkEntries]E

// group has the entries of its terms in the order of arrival.
type group[E entry] struct {
	last   *chunk[E] // the one to write to, unless the number of entries shows that it is full
	n      int
	chunks []*chunk[E]
}

// pool has all groups, and the memory that they use and keep.
type pool[E entry] struct {
	groups []group[E]
	slabs  []*[slabChunks]chunk[E]
	used   int // chunks
}

// grow makes room for at least that many groups.
func (p *pool[E]) grow(groups int) {
	if n := len(p.groups); n < groups {
		p.groups = slices.Grow(p.groups, groups-n)[:groups] // reuses the memory of groups, see reset
	}
}

// extend gives a group another chunk.
func (p *pool[E]) extend(to *group[E]) {
	if p.used/slabChunks == len(p.slabs) {
		p.slabs = append(p.slabs, new([slabChunks]chunk[E]))
	}
	to.last = &p.slabs[p.used/slabChunks][p.used%slabChunks]
	to.last[0] = 0 // reading the page first, as the caller may, would cost another page fault
	to.chunks = append(to.chunks, to.last)
	p.used++
}

// memory returns how many bytes the entries take.
func (p *pool[E]) memory() int64 { return int64(p.used) * int64(unsafe.Sizeof(chunk[E]{})) }

// reset drops all postings and keeps the memory.
func (p *pool[E]) reset() {
	for i := range p.groups {
		p.groups[i].n, p.groups[i].chunks = 0, p.groups[i].chunks[:0]
	}
	p.groups, p.used = p.groups[:0], 0
}

// parts returns the entries from one to another, in pieces.
func (g *group[E]) parts(from, to int) iter.Seq[[]E] {
	return func(yield func([]E) bool) {
		for from < to {
			at := from % chunkEntries
			part := g.chunks[from/chunkEntries][at:min(at+to-from, chunkEntries)]
			if !yield(part) {
				return
			}
			from += len(part)
		}
	}
}

// count sets starts, of all terms of the group, to where the postings of each will start when they
// are sorted.
func (g *group[E]) count(starts []uint32) {
	clear(starts)
	shift := unsafe.Sizeof(E(0))*8 - groupBits
	for part := range g.parts(0, g.n) {
		for _, e := range part {
			starts[e>>shift]++
		}
	}
	sum := uint32(0)
	for i, n := range starts {
		starts[i] = sum
		sum += n
	}
}

// numberAt is where an entry of a sortedPool has the low bits of its term's number.
const numberAt = 64 - groupBits

// sortedPool has a run of entries for each term, once all are there and it is sorted.
type sortedPool struct {
	pool[uint64]
	starts []uint32 // start of each term's run in its group
	sorted []uint64
}

// add adds an entry of a term, which has only the bits below numberAt. There must be a group for it.
func (p *sortedPool) add(number uint32, entry uint64) {
	g := &p.groups[number>>groupBits]
	at := g.n % chunkEntries
	if at == 0 {
		p.extend(g)
	}
	g.last[at] = uint64(number%groupSize)<<numberAt | entry
	g.n++
}

// sort sorts the entries of the given number of terms by term, group by group and in place. The entries of a term keep their order.
func (p *sortedPool) sort(terms int) {
	p.starts = slices.Grow(p.starts[:0], terms)[:terms]
	for i := range p.groups {
		g, starts := &p.groups[i], p.starts[i*groupSize:min((i+1)*groupSize, terms)]
		if len(p.sorted) < g.n {
			p.sorted = make([]uint64, g.n+g.n/4)
		}
		g.count(starts)
		for part := range g.parts(0, g.n) {
			for _, entry := range part {
				at := &starts[entry>>numberAt]
				p.sorted[*at] = entry
				*at++
			}
		}
		rest := p.sorted
		for part := range g.parts(0, g.n) {
			rest = rest[copy(part, rest):]
		}
		copy(starts[1:], starts) // the end of a run is the start of the next one
		starts[0] = 0
	}
}

// run returns where the entries of a term are in its group.
func (p *sortedPool) run(number uint32) (g *group[uint64], start, end int) {
	g = &p.groups[number>>groupBits]
	start, end = int(p.starts[number]), g.n
	if next := number + 1; next%groupSize != 0 && int(next) < len(p.starts) {
		end = int(p.starts[next])
	}
	return g, start, end
}
