package inverted

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
)

// blockSize is the number of postings in each block of a list except the last.
const blockSize = 128

// A gap is the number of values that are missing before a value. The list knows the last value of a
// block, which is not coded. The first bit of a block names its coding.
const (
	codingGaps = iota // each gap in the code of the block's scale
	codingRuns        // alternately a gap and the length of a run, in gamma codes
)

// maxGapBits bounds the bits of one coded gap: code, magnitude and low bits. A run takes fewer.
const maxGapBits = gapCodeBits + 32 + 1

// block appends one block: for words the definitions, which a reader may want alone, then the superblocks, the counts of words, and the masks. first
// is the least superblock that the block may have.
func (w *bitWriter) block(first uint64, blocks []uint8, r *run) {
	if len(r.counts) == 0 {
		w.superblocks(first, r.superblocks)
	} else {
		w.room(8 + len(r.counts))
		w.definitions(r.defined)
		w.superblocks(first, r.superblocks)
		w.room(4 * len(r.counts))
		for _, n := range r.counts {
			w.gamma(uint32(n))
		}
	}
	w.masks(blocks, r.superblocks, r.masks)
}

// superblocks appends those of a block, which ascend from first or later, in the smaller coding.
// A single one, or several without a gap, take no bits.
func (w *bitWriter) superblocks(first uint64, values []uint32) {
	n := len(values) - 1
	span := uint64(values[n]) - first
	if n == 0 || uint64(n) == span {
		return
	}
	w.room((n+1)*maxGapBits/8 + 8)
	start := *w
	w.put(codingGaps, 1)
	scale, low := gapScale(span-uint64(n), n)
	zeros := w.gaps(&gaps().codes[scale], low, uint32(first), values[:n])
	if zeros*worthRuns < n*(worthRuns-1) {
		return
	}
	size := 0
	for v := range runs(first, values[:n]) {
		size += 2*bits.Len32(v) - 1
	}
	if size < w.bitLen()-start.bitLen()-1 {
		*w = start
		w.put(codingRuns, 1)
		for v := range runs(first, values[:n]) {
			w.gamma(v)
		}
	}
}

// worthRuns is the mean length from which on runs may be the smaller coding.
const worthRuns = 3

// gaps appends the gap before each value and returns how many are 0. It inlines put, with the
// writer's state in registers. It appends the magnitude together with the low bits: both are below
// the highest bit of the gap plus 1 << low.
func (w *bitWriter) gaps(codes *[gapMagnitudes]gapCode, low uint, next uint32, values []uint32) (zeros int) {
	data, at, pending, n := w.data, w.at, w.pending, w.n
	for _, v := range values {
		gap := v - next
		next = v + 1
		zeros += int((uint64(gap) - 1) >> 63) // 1 if gap is 0
		rest := uint64(gap) + 1<<low
		width := uint(bits.Len64(rest)) - 1
		code := codes[(width-low)%gapMagnitudes]
		length := uint(code.length) % 64
		pending |= (uint64(code.bits) | (rest^1<<(width%64))<<length) << (n % 64)
		n += length + width
		binary.LittleEndian.PutUint64(data[at:], pending)
		at += int(n / 8)
		pending >>= n & 56
		n %= 8
	}
	w.at, w.pending, w.n = at, pending, n
	return zeros
}

// runs yields, alternately, the gap before a run of successive values and the length of the run.
// Only the first gap may be 0, so 1 is added to it.
func runs(first uint64, values []uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		next, start := uint32(first)-1, 0
		for i, v := range values {
			if gap := v - next; gap > 0 {
				if i > 0 && !yield(uint32(i-start)) || !yield(gap) {
					return
				}
				start = i
			}
			next = v + 1
		}
		yield(uint32(len(values) - start))
	}
}

// definitions marks the postings in whose superblock the word is defined, if there are any.
func (w *bitWriter) definitions(defined []bool) {
	if !slices.Contains(defined, true) {
		w.put(0, 1)
		return
	}
	w.put(1, 1)
	for _, d := range defined {
		bit := uint64(0)
		if d {
			bit = 1
		}
		w.put(bit, 1)
	}
}

// masks appends a block of masks. It inlines put, with the writer's state in registers.
func (w *bitWriter) masks(blocks []uint8, superblocks []uint32, values []uint8) {
	w.room((len(values) + 1) * 2)
	class := maskClass(values)
	w.put(uint64(class), maskClassBits)
	table := &masks().codes[class]
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
