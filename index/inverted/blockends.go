package inverted

import (
	"math/bits"

	"github.com/trawl-search/trawl/index/format"
)

// The masks of a list, and the tail of a word's list, are blocks of bits that can be decoded
// separately. If there are several, the ends of all except the last one precede them.

// blocksEncoder writes the blocks of lists. It reuses its memory from list to list.
type blocksEncoder struct {
	body bitWriter
	ends []uint32 // in bits
}

func (e *blocksEncoder) reset() {
	e.body.reset()
	e.ends = e.ends[:0]
}

// end ends the block that was appended to body.
func (e *blocksEncoder) end() { e.ends = append(e.ends, uint32(e.body.bitLen())) }

// appendTo appends the blocks with their ends. There are at least two blocks.
func (e *blocksEncoder) appendTo(w *bitWriter) {
	skips := len(e.ends) - 1
	width := uint(bits.Len32(e.ends[skips]))
	w.room(1)
	w.put(uint64(width), 8)
	w.packed(e.ends[:skips], width)
	w.pad()
	w.bits(&e.body)
	w.pad()
}

// blockEnds finds the blocks of one list. Its zero value can be used for any list.
type blockEnds struct {
	opened bool
	width  uint
	ends   []byte // packed, of every block except the last one
	start  int64  // offset of the first block in the section
}

// block returns a reader at the bits of block number of a list with that many blocks, more than one,
// and where the block ends in these bits. The blocks are at [from, to) in the section.
func (e *blockEnds) block(s *format.Section, from, to int64, blocks, number int) (r bitReader, end uint, err error) {
	if !e.opened {
		if err := e.open(s, from, to, blocks-1); err != nil {
			return r, 0, err
		}
	}
	first, last := uint64(0), uint64(to-e.start)*8
	if number > 0 {
		first = packedAt(e.ends, 0, number-1, e.width)
	}
	if number < blocks-1 {
		last = min(last, packedAt(e.ends, 0, number, e.width))
	}
	if first > last {
		return r, 0, s.Corruptf(e.start, "block %d of a list starts at bit %d and ends at bit %d", number, first, last)
	}
	at := e.start + int64(first/8)
	data, err := s.Bytes(at, e.start+int64(byteLen(last))-at)
	return bitReader{data: data, pos: uint(first % 8)}, uint(last - first/8*8), err
}

// open finds the ends of all blocks except the last one.
func (e *blockEnds) open(s *format.Section, from, to int64, skips int) error {
	width, err := s.Bytes(from, 1)
	if err != nil {
		return err
	}
	if e.width = uint(width[0]); e.width > 32 {
		return s.Corruptf(from, "ends of blocks of %d bits", e.width)
	}
	size := int64(byteLen(uint64(skips) * uint64(e.width)))
	if e.ends, err = s.Bytes(from+1, size); err != nil {
		return err
	}
	if e.start = from + 1 + size; e.start > to {
		return s.Corruptf(from, "the ends of %d blocks take more than %d bytes", skips, to-from)
	}
	e.opened = true
	return nil
}
