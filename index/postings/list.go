package postings

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
)

// MaxSuperblocks bounds the superblocks of one index: 8 TiB of text.
const MaxSuperblocks = 1 << 31

var errListHeader = errors.New("the head of a posting list is out of its bounds")

// listEncoder writes posting lists; its memory is reused from list to list.
type listEncoder struct {
	block blockEncoder
	body  []byte
	lasts []uint32
	ends  []uint32
}

// append appends the list of superblocks, ascending and not empty.
func (e *listEncoder) append(dst []byte, superblocks []uint32) []byte {
	last := superblocks[len(superblocks)-1]
	dst = binary.AppendUvarint(dst, uint64(len(superblocks)))
	dst = binary.AppendUvarint(dst, uint64(last))
	e.encodeBlocks(superblocks)
	if n := len(e.ends) - 1; n > 0 {
		dst = append(dst, byte(bits.Len32(e.ends[n])))
		dst = appendPacked(dst, e.lasts[:n], uint(bits.Len32(last)))
		dst = appendPacked(dst, e.ends[:n], uint(bits.Len32(e.ends[n])))
	}
	return append(dst, e.body...)
}

// encodeBlocks fills body, and for each block its last superblock and its end.
func (e *listEncoder) encodeBlocks(superblocks []uint32) {
	e.body, e.lasts, e.ends = e.body[:0], e.lasts[:0], e.ends[:0]
	first := uint64(0)
	for block := range slices.Chunk(superblocks, blockSize) {
		e.block.measure(first, block)
		e.body = e.block.append(e.body)
		last := block[len(block)-1]
		e.lasts = append(e.lasts, last)
		e.ends = append(e.ends, uint32(len(e.body)))
		first = uint64(last) + 1
	}
}

// rawList is a view of an encoded posting list.
type rawList struct {
	df, last  uint32
	lastWidth uint
	endWidth  uint
	lasts     []byte // packed, of every block but the last one
	ends      []byte // packed, the same
	body      []byte
}

// openList checks the head of a list that has data to itself; superblocks bounds
// what it may hold.
func openList(data []byte, superblocks uint32) (l rawList, err error) {
	df, n := binary.Uvarint(data)
	last, m := binary.Uvarint(data[max(n, 0):])
	if n <= 0 || m <= 0 || df == 0 || last >= uint64(superblocks) || df > last+1 {
		return rawList{}, errListHeader
	}
	l = rawList{df: uint32(df), last: uint32(last), body: data[n+m:]}
	if l.blocks() == 1 {
		return l, nil
	}
	return l, l.openSkips()
}

func (l *rawList) openSkips() error {
	if len(l.body) == 0 || l.body[0] > 32 {
		return errListHeader
	}
	l.lastWidth, l.endWidth = uint(bits.Len32(l.last)), uint(l.body[0])
	skips := uint64(l.blocks() - 1)
	lasts := byteLen(skips * uint64(l.lastWidth))
	ends := byteLen(skips * uint64(l.endWidth))
	rest := l.body[1:]
	if lasts+ends > uint64(len(rest)) {
		return errListHeader
	}
	l.lasts, l.ends, l.body = rest[:lasts], rest[lasts:lasts+ends], rest[lasts+ends:]
	return nil
}

func (l *rawList) blocks() int { return int((uint64(l.df) + blockSize - 1) / blockSize) }

// blockLen is the number of postings in block b.
func (l *rawList) blockLen(b int) int {
	if b == l.blocks()-1 {
		return int(l.df-1)%blockSize + 1
	}
	return blockSize
}

// lastOf is the last superblock of block b.
func (l *rawList) lastOf(b int) uint32 {
	if b == l.blocks()-1 {
		return l.last
	}
	return packedAt(l.lasts, b, l.lastWidth)
}

// firstOf is the least superblock that block b may hold.
func (l *rawList) firstOf(b int) uint64 {
	if b == 0 {
		return 0
	}
	return uint64(l.lastOf(b-1)) + 1
}

// span is where block b stands in the body.
func (l *rawList) span(b int) (from, to uint32) {
	if b > 0 {
		from = packedAt(l.ends, b-1, l.endWidth)
	}
	if b < l.blocks()-1 {
		return from, packedAt(l.ends, b, l.endWidth)
	}
	return from, uint32(len(l.body))
}

// decode fills values with block b and returns its part of values.
func (l *rawList) decode(b int, values *[blockSize]uint32) ([]uint32, error) {
	from, to := l.span(b)
	last := l.lastOf(b)
	switch {
	case from > to || uint64(to) > uint64(len(l.body)):
		return nil, errBlockEnds
	case last > l.last:
		return nil, errBlockOrder
	}
	block := values[:l.blockLen(b)]
	block[len(block)-1] = last
	if err := decodeBlock(l.body[from:to], l.firstOf(b), block); err != nil {
		return nil, err
	}
	return block, nil
}
