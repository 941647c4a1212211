package inverted

import "github.com/trawl-search/trawl/index/ngram"

// An entry of an n-gram has, from the lowest bit on, its mask, the low bits of its superblock, and
// the low bits of its n-gram. The high bits of the superblock are the era. They follow from the
// length of the group when the era began.
const (
	groupCount = (ngram.Space + groupSize - 1) / groupSize

	entryMaskBits = 8
	eraBits       = 32 - groupBits - entryMaskBits
	eraSize       = 1 << eraBits
)

// ngramPool has the postings of n-grams.
type ngramPool struct {
	pool[uint32]
	eras []groupEra
}

// groupEra has the number of entries that each group had before an era.
type groupEra [groupCount]int

// add adds the postings of one superblock, which is greater than all before.
func (p *ngramPool) add(superblock uint32, ids []ngram.ID, masks []uint8) {
	p.grow(groupCount)
	for uint32(len(p.eras)) <= superblock/eraSize {
		p.eras = append(p.eras, groupEra{})
		for i := range p.groups {
			p.eras[len(p.eras)-1][i] = p.groups[i].n
		}
	}
	base := superblock % eraSize << entryMaskBits
	masks = masks[:len(ids)]
	for i, id := range ids {
		group := &p.groups[id/groupSize]
		at := group.n % chunkEntries
		if at == 0 {
			p.extend(group)
		}
		group.last[at] = uint32(id%groupSize)<<(eraBits+entryMaskBits) | base | uint32(masks[i])
		group.n++
	}
}

func (p *ngramPool) reset() {
	p.pool.reset()
	p.eras = p.eras[:0]
}

// sortedGroup has the postings of one group by n-gram: those of the group's n-gram i end at ends[i].
// It reuses its memory from group to group.
type sortedGroup struct {
	ends        [groupSize]uint32
	superblocks []uint32
	masks       []uint8
}

// sort sorts a group. The order of superblocks is kept.
func (s *sortedGroup) sort(p *ngramPool, number int) {
	g := &p.groups[number]
	if g.n > len(s.masks) {
		s.superblocks, s.masks = make([]uint32, g.n+g.n/4), make([]uint8, g.n+g.n/4)
	}
	g.count(s.ends[:])
	for era := range p.eras {
		end := g.n
		if era+1 < len(p.eras) {
			end = p.eras[era+1][number]
		}
		first := uint32(era) * eraSize
		for part := range g.parts(p.eras[era][number], end) {
			for _, entry := range part {
				to := &s.ends[entry>>(eraBits+entryMaskBits)]
				s.superblocks[*to] = first + entry>>entryMaskBits%eraSize
				s.masks[*to] = uint8(entry)
				*to++
			}
		}
	}
}
