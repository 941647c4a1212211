package postings

import "encoding/binary"

// Postings are collected in chunks of one pool, chained per n-gram:
//
//	superblock delta (uvarint), mask (u8), …, 0 if room is left, next chunk (u32)
//
// The delta is to the n-gram's superblock before, or for the first to -1, so that it
// is never 0. Chunks are numbered through slabs, which are kept for the next
// index, so that building neither moves nor frees memory.
const (
	chunkSize    = 64
	chunkPayload = chunkSize - 4
	slabChunks   = 1 << 14 // 1 MiB
	maxPosting   = binary.MaxVarintLen32 + 1
)

type slab [slabChunks * chunkSize]byte

// chunkPool hands out chunks by number.
type chunkPool struct {
	slabs []*slab
	used  uint32
}

// take returns a chunk's number; its content is what it was before.
func (p *chunkPool) take() uint32 {
	if int(p.used/slabChunks) == len(p.slabs) {
		p.slabs = append(p.slabs, new(slab))
	}
	p.used++
	return p.used - 1
}

func (p *chunkPool) chunk(number uint32) *[chunkSize]byte {
	at := number % slabChunks * chunkSize
	return (*[chunkSize]byte)(p.slabs[number/slabChunks][at : at+chunkSize])
}

func (p *chunkPool) reset() { p.used = 0 }

// chain is the postings of one n-gram; without any, df is 0.
type chain struct {
	head, tail uint32 // chunks
	last       uint32 // superblock
	df         uint32
	fill       uint8 // bytes used of the tail
}

// add appends a posting; superblock is above last.
func (c *chain) add(p *chunkPool, superblock uint32, mask uint8) {
	delta := superblock - c.last
	if c.df == 0 {
		c.head = p.take()
		c.tail = c.head
		delta = superblock + 1
	}
	c.last = superblock
	c.df++
	chunk := p.chunk(c.tail)
	if c.fill > chunkPayload-maxPosting {
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
func (c *chain) extend(p *chunkPool, full *[chunkSize]byte) *[chunkSize]byte {
	if c.fill < chunkPayload {
		full[c.fill] = 0
	}
	c.tail = p.take()
	c.fill = 0
	binary.LittleEndian.PutUint32(full[chunkPayload:], c.tail)
	return p.chunk(c.tail)
}

// collect fills superblocks and masks, which have room for df each.
func (c *chain) collect(p *chunkPool, superblocks []uint32, masks []uint8) {
	chunk := p.chunk(c.head)
	at, last := 0, ^uint32(0)
	for i := range superblocks {
		if at == chunkPayload || chunk[at] == 0 {
			chunk = p.chunk(binary.LittleEndian.Uint32(chunk[chunkPayload:]))
			at = 0
		}
		delta, shift := uint32(0), 0
		for ; chunk[at] >= 0x80; shift += 7 {
			delta |= uint32(chunk[at]&0x7f) << shift
			at++
		}
		last += delta | uint32(chunk[at])<<shift
		superblocks[i], masks[i] = last, chunk[at+1]
		at += 2
	}
}
