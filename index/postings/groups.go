package postings

import "github.com/trawl-search/trawl/index/ngram"

// Postings are collected in groups of n-grams with successive numbers. Groups are few enough that
// all their ends stay in the cache, and small enough that sorting one by n-gram, once, when the
// index is written, stays in the cache, too. So each posting is written twice, and never far away.
// An entry has, from the lowest bit on, its mask, the low bits of its superblock, and the low bits
// of its n-gram. The high bits of the superblock are the era. They follow from the length of the
// group when the era began.
const (
	groupBits  = 10
	groupSize  = 1 << groupBits
	groupCount = (ngram.Space + groupSize - 1) / groupSize

	entryMaskBits = 8
	eraBits       = 32 - groupBits - entryMaskBits
	eraSize       = 1 << eraBits
	entrySize     = 4
	chunkEntries  = 1024
	slabChunks    = 256 // 1 MiB
)

type chunk [chunkEntries]uint32

// group has the entries of one group in the order of arrival.
type group struct {
	last   *chunk // the one to write to, unless the number of entries shows that it is full
	n      int
	chunks []*chunk
}

// groups has all groups, and the memory that they use and keep.
type groups struct {
	groups [groupCount]group
	eras   []groupEra
	slabs  []*[slabChunks]chunk
	used   int // chunks
}

// groupEra has the number of entries that each group had before an era.
type groupEra [groupCount]int

// add adds the postings of one superblock, which is greater than all before.
func (g *groups) add(superblock uint32, ids []ngram.ID, masks []uint8) {
	for uint32(len(g.eras)) <= superblock/eraSize {
		g.eras = append(g.eras, g.lengths())
	}
	base := superblock % eraSize << entryMaskBits
	masks = masks[:len(ids)]
	for i, id := range ids {
		group := &g.groups[id/groupSize]
		at := group.n % chunkEntries
		if at == 0 {
			g.extend(group)
		}
		group.last[at] = uint32(id%groupSize)<<(eraBits+entryMaskBits) | base | uint32(masks[i])
		group.n++
	}
}

func (g *groups) lengths() (lengths groupEra) {
	for i := range g.groups {
		lengths[i] = g.groups[i].n
	}
	return lengths
}

// extend gives a group another chunk.
func (g *groups) extend(to *group) {
	if g.used/slabChunks == len(g.slabs) {
		g.slabs = append(g.slabs, new([slabChunks]chunk))
	}
	to.last = &g.slabs[g.used/slabChunks][g.used%slabChunks]
	to.last[0] = 0 // reading the page first, as add does, would cost another page fault
	to.chunks = append(to.chunks, to.last)
	g.used++
}

// mostChunks bounds the chunks in use after that many more postings.
func (g *groups) mostChunks(postings int) int {
	return g.used + postings/chunkEntries + groupCount
}

// reset drops all postings and keeps the memory.
func (g *groups) reset() {
	for i := range g.groups {
		g.groups[i].n, g.groups[i].chunks = 0, g.groups[i].chunks[:0]
	}
	g.eras, g.used = g.eras[:0], 0
}

// sorted has the postings of one group by n-gram: those of the group's n-gram i end at ends[i]. It
// reuses its memory from group to group.
type sorted struct {
	ends        [groupSize]int
	superblocks []uint32
	masks       []uint8
}

// room makes room for sorting any of the groups.
func (s *sorted) room(g *groups) {
	most := 0
	for i := range g.groups {
		most = max(most, g.groups[i].n)
	}
	if most > len(s.masks) {
		s.superblocks, s.masks = make([]uint32, most), make([]uint8, most)
	}
}

// sort sorts a group, for which there must be room. The order of superblocks is kept.
func (s *sorted) sort(g *groups, number int) {
	from := &g.groups[number]
	s.count(from)
	for era := range g.eras {
		end := from.n
		if era+1 < len(g.eras) {
			end = g.eras[era+1][number]
		}
		s.place(from, g.eras[era][number], end, uint32(era)*eraSize)
	}
}

// count sets ends to where the postings of each n-gram start.
func (s *sorted) count(from *group) {
	clear(s.ends[:])
	left := from.n
	for _, chunk := range from.chunks {
		for _, entry := range chunk[:min(left, chunkEntries)] {
			s.ends[entry>>(eraBits+entryMaskBits)]++
		}
		left -= chunkEntries
	}
	sum := 0
	for i, n := range &s.ends {
		s.ends[i] = sum
		sum += n
	}
}

// place puts the entries from start to end into their places, and advances ends.
func (s *sorted) place(from *group, start, end int, firstSuperblock uint32) {
	for start < end {
		at := start % chunkEntries
		entries := from.chunks[start/chunkEntries][at:min(at+end-start, chunkEntries)]
		for _, entry := range entries {
			to := &s.ends[entry>>(eraBits+entryMaskBits)]
			s.superblocks[*to] = firstSuperblock + entry>>entryMaskBits%eraSize
			s.masks[*to] = uint8(entry)
			*to++
		}
		start += len(entries)
	}
}
