package postings

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Masks are stored separately from their superblocks, in blocks of blockSize like the superblocks.
// The first three bits of a block name its density class. The code of each mask depends on that
// class and on the number of blocks of its superblock in which windows start.

// maskEncoder writes the masks of lists. It reuses its memory from list to list.
type maskEncoder struct{ several blocksEncoder }

// append appends the masks of a list. blocks has, for each superblock of the index, the number of
// its blocks in which windows start.
func (e *maskEncoder) append(w *bitWriter, blocks []uint8, superblocks []uint32, values []uint8) {
	codes := masks()
	if len(values) <= blockSize {
		w.masks(codes, blocks, superblocks, values)
		w.pad()
		return
	}
	e.several.reset()
	for block := range slices.Chunk(values, blockSize) {
		e.several.body.masks(codes, blocks, superblocks[:len(block)], block)
		e.several.end()
		superblocks = superblocks[len(block):]
	}
	e.several.appendTo(w)
}

// masks appends a block of masks. It inlines put, with the writer's state in registers.
func (w *bitWriter) masks(codes *maskCodes, blocks []uint8, superblocks []uint32, values []uint8) {
	w.room((len(values) + 1) * 2)
	class := maskClass(values)
	w.put(uint64(class), maskClassBits)
	table := &codes.codes[class]
	data, at, pending, n := w.data, w.at, w.pending, w.n
	for i, s := range superblocks {
		code := table[(blocks[s]-1)%maskBlocks][values[i]]
		pending |= uint64(code>>codeLengthBits) << (n % 64)
		n += uint(code % (1 << codeLengthBits))
		binary.LittleEndian.PutUint64(data[at:], pending)
		at += int(n / 8)
		pending >>= n & 56
		n %= 8
	}
	w.at, w.pending, w.n = at, pending, n
}

var errMaskBlock = errors.New("a block of masks ends too early, or belongs to superblocks without windows")

// maskBlock decodes the masks of one block, as far as needed.
type maskBlock struct {
	codes       *[maskBlocks][1 << maskCodeBits]uint16
	bits        bitReader
	end         uint // in bits
	n           int  // masks decoded
	masks       [blockSize]uint8
	superblocks [blockSize]uint32
}

// reset starts the block in the bits up to an end. The caller sets its superblocks up to i before
// it calls at for mask i.
func (b *maskBlock) reset(r bitReader, end uint) {
	b.bits, b.end, b.n = r, end, 0
	b.codes = &masks().decode[b.bits.get(maskClassBits)]
}

// at returns mask i of the block, given the block counts of superblocks. It decodes as many masks
// at once as the bits of one load certainly have.
func (b *maskBlock) at(i int, blocks blockCounts) (uint8, error) {
	for b.n <= i {
		v, used, n := b.bits.load(), uint(0), min(i+1, b.n+loadedBits/maskCodeBits)
		for j := b.n; j < n; j++ {
			count := blocks.at(b.superblocks[j])
			code := b.codes[(count-1)%maskBlocks][v%(1<<maskCodeBits)]
			length := uint(code % (1 << codeLengthBits))
			v >>= length
			used += length
			if count-1 >= maskBlocks {
				return 0, errMaskBlock
			}
			b.masks[j] = uint8(code >> codeLengthBits)
		}
		b.bits.pos += used
		if b.bits.pos > b.end {
			return 0, errMaskBlock
		}
		b.n = n
	}
	return b.masks[i], nil
}

// blockCounts has, for each superblock, the number of its blocks in which windows start, in four
// bits each, the first in the lower half of a byte.
type blockCounts []byte

func appendBlockCounts(dst []byte, blocks []uint8) []byte {
	for pair := range slices.Chunk(blocks, 2) {
		both := pair[0]
		if len(pair) > 1 {
			both |= pair[1] << 4
		}
		dst = append(dst, both)
	}
	return dst
}

// blockCountsSize returns the bytes that the counts of that many superblocks take.
func blockCountsSize(superblocks uint32) uint64 { return (uint64(superblocks) + 1) / 2 }

// at returns the count of a superblock of the index.
func (c blockCounts) at(superblock uint32) uint8 {
	return c[superblock/2] >> (superblock % 2 * 4) & 15
}
