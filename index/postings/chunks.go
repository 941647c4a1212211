package postings

import "encoding/binary"

// Postings are collected in chunks of one pool, chained per n-gram:
//
//	superblock delta (uvarint), mask (u8), …, 0 if room is left, next chunk (u32)
//
// The delta is to the n-gram's superblock before, or for the first to -1, so that it
// is never 0. A chain's first chunk is small, since most n-grams are rare; the others
// are large, so that going over them is not one cache miss after the other. Chunks
// are numbered in units through slabs, which are kept for the next index, so that
// building neither moves nor frees memory.
const (
	unitSize   = 64
	slabUnits  = 1 << 14 // 1 MiB
	smallUnits = 1
	largeUnits = 4
	linkSize   = 4
	maxPosting = binary.MaxVarintLen32 + 1
)

type slab [slabUnits * unitSize]byte

// chunkPool hands out chunks by the number of their first unit.
type chunkPool struct {
	slabs []*slab
	used  uint32
}

// take returns the number of a chunk of that many units; its content is what it was
// before. A chunk stands in one slab.
func (p *chunkPool) take(units uint32) uint32 {
	if over := p.used % slabUnits; over+units > slabUnits {
		p.used += slabUnits - over
	}
	if int(p.used/slabUnits) == len(p.slabs) {
		p.slabs = append(p.slabs, new(slab))
	}
	p.used += units
	return p.used - units
}

func (p *chunkPool) chunk(number, units uint32) []byte {
	at := number % slabUnits * unitSize
	return p.slabs[number/slabUnits][at : at+units*unitSize]
}

func (p *chunkPool) reset() { p.used = 0 }

// chain is the postings of one n-gram; without any, df is 0.
type chain struct {
	head, tail uint32 // chunks
	last       uint32 // superblock
	df         uint32
	fill       uint8 // bytes used of the tail
	units      uint8 // of the tail
}

// add appends a posting; superblock is above last.
func (c *chain) add(p *chunkPool, superblock uint32, mask uint8) {
	delta := superblock - c.last
	if c.df == 0 {
		c.head, c.units = p.take(smallUnits), smallUnits
		c.tail = c.head
		delta = superblock + 1
	}
	c.last = superblock
	c.df++
	chunk := p.chunk(c.tail, uint32(c.units))
	if int(c.fill) > len(chunk)-linkSize-maxPosting {
		chunk = c.extend(p, chunk)
	}
	n := int(c.fill)
	for ; delta >= 0x80; delta >>= 7 {
		chunk[n] = byte(delta) | 0x80
		n++
	}
	chunk[n], chunk[n+1] = byte(delta), mask
	c.fill = uint8(n + 2)
}

// extend chains a new chunk after the full one.
func (c *chain) extend(p *chunkPool, full []byte) []byte {
	link := full[len(full)-linkSize:]
	if int(c.fill) < len(full)-linkSize {
		full[c.fill] = 0
	}
	c.tail, c.units, c.fill = p.take(largeUnits), largeUnits, 0
	binary.LittleEndian.PutUint32(link, c.tail)
	return p.chunk(c.tail, largeUnits)
}

// collect fills superblocks and masks, which have room for df each.
func (c *chain) collect(p *chunkPool, superblocks []uint32, masks []uint8) {
	chunk := p.chunk(c.head, smallUnits)
	at, last := 0, ^uint32(0)
	for i := range superblocks {
		if at == len(chunk)-linkSize || chunk[at] == 0 {
			chunk = p.chunk(binary.LittleEndian.Uint32(chunk[len(chunk)-linkSize:]), largeUnits)
			at = 0
		}
		delta := uint32(chunk[at])
		if delta >= 0x80 {
			long, n := binary.Uvarint(chunk[at:])
			delta = uint32(long)
			at += n - 1
		}
		last += delta
		superblocks[i], masks[i] = last, chunk[at+1]
		at += 2
	}
}
