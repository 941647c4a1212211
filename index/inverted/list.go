package inverted

import (
	"errors"
	"math"
	"math/bits"
)

// MaxSuperblocks bounds the superblocks of one index: 8 TiB of text.
const MaxSuperblocks = 1 << 31

// endWidthBits is the size of the field that has the width of the ends of a list's blocks.
const endWidthBits = 6

var errListHeader = errors.New("the head of a posting list is out of its bounds")

// listEncoder writes posting lists. It reuses its memory from list to list.
type listEncoder struct {
	several blocksEncoder
	lasts   []uint32
}

// append appends a list of superblocks, which is not empty and ascends. Each superblock fits into
// lastWidth bits.
func (e *listEncoder) append(w *bitWriter, superblocks []uint32, lastWidth uint) {
	w.room(32)
	w.gamma(uint32(len(superblocks)))
	w.put(uint64(superblocks[len(superblocks)-1]), lastWidth)
	if len(superblocks) <= blockSize { // nearly all lists: no ends of blocks precede it
		appendBlock(w, gaps(), 0, superblocks)
		w.pad()
		return
	}
	e.encodeBlocks(superblocks)
	width := uint(bits.Len32(e.several.ends[len(e.lasts)]))
	w.put(uint64(width), endWidthBits)
	w.packed(e.lasts, lastWidth)
	w.packed(e.several.ends[:len(e.lasts)], width)
	w.bits(&e.several.body)
	w.pad()
}

// encodeBlocks encodes several blocks, and records the last superblock of each but the last one.
func (e *listEncoder) encodeBlocks(superblocks []uint32) {
	e.several.reset()
	e.lasts = e.lasts[:0]
	first := uint64(0)
	for len(superblocks) > 0 {
		n := min(blockSize, len(superblocks))
		appendBlock(&e.several.body, gaps(), first, superblocks[:n])
		e.several.end()
		if last := superblocks[n-1]; n < len(superblocks) {
			e.lasts, first = append(e.lasts, last), uint64(last)+1
		}
		superblocks = superblocks[n:]
	}
}

// superblockBits returns the width in bits of a superblock's number in an index with that many.
func superblockBits(superblocks uint32) uint { return uint(bits.Len32(max(superblocks, 1) - 1)) }

// rawList is a view of an encoded posting list. Offsets are in bits.
type rawList struct {
	df, last  uint32
	lastWidth uint
	endWidth  uint
	lasts     uint // of every block except the last one
	ends      uint // the same
	body      uint
	data      []byte
}

// open checks the head of a list that takes all of data. superblocks is the bound on its values.
func (l *rawList) open(data []byte, superblocks uint32) error {
	r := bitReader{data: data}
	*l = rawList{data: data, lastWidth: superblockBits(superblocks)}
	df := r.gamma()
	last := r.get(l.lastWidth)
	if r.overrun() || df == 0 || last >= uint64(superblocks) || df > last+1 {
		return errListHeader
	}
	l.df, l.last = uint32(df), uint32(last)
	if l.blocks() > 1 {
		l.endWidth = uint(r.get(endWidthBits))
		l.lasts = r.pos
		l.ends = l.lasts + uint(l.blocks()-1)*l.lastWidth
		r.pos = l.ends + uint(l.blocks()-1)*l.endWidth
	}
	if l.body = r.pos; r.overrun() || l.endWidth > 32 {
		return errListHeader
	}
	return nil
}

func (l *rawList) blocks() int { return int((uint64(l.df) + blockSize - 1) / blockSize) }

// blockLen returns the number of postings in block b.
func (l *rawList) blockLen(b int) int {
	if b == l.blocks()-1 {
		return int(l.df-1)%blockSize + 1
	}
	return blockSize
}

// lastOf returns the last superblock of block b.
func (l *rawList) lastOf(b int) uint32 {
	if b == l.blocks()-1 {
		return l.last
	}
	return uint32(packedAt(l.data, l.lasts, b, l.lastWidth))
}

// firstOf returns the least superblock that block b may have.
func (l *rawList) firstOf(b int) uint64 {
	if b == 0 {
		return 0
	}
	return uint64(l.lastOf(b-1)) + 1
}

// blockAfter returns the first block after b (-1 for the start) with a superblock that is at least
// x, which is not above the last one. It uses a galloping search.
func (l *rawList) blockAfter(b int, x uint32) int {
	from, to := b+1, l.blocks()-1
	for step := 1; from+step < to; step *= 2 {
		if l.lastOf(from+step) >= x {
			to = from + step
			break
		}
		from += step
	}
	return l.search(x, from, to)
}

// search returns the first block of [from, to) whose last superblock is at least x, or to if there
// is none.
func (l *rawList) search(x uint32, from, to int) int {
	for from < to {
		if mid := int(uint(from+to) / 2); l.lastOf(mid) < x {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from
}

// span returns the place of block b in the data, in bits.
func (l *rawList) span(b int) (from, to uint) {
	from, to = l.body, uint(len(l.data))*8
	if b < l.blocks()-1 {
		to = l.body + uint(packedAt(l.data, l.ends, b, l.endWidth))
	}
	if b > 0 {
		from += uint(packedAt(l.data, l.ends, b-1, l.endWidth))
	}
	return from, to
}

// decode fills values with block b and returns its part of values.
func (l *rawList) decode(b int, values *[blockSize]uint32) ([]uint32, error) {
	var r blockReader
	block, err := r.open(l, b, values)
	if err == nil {
		err = r.until(math.MaxUint64)
	}
	return block, err
}
