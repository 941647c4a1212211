package postings

import (
	"encoding/binary"
	"math/bits"
)

// blockSize is the number of postings in each block of a list but its last.
const blockSize = 128

// coding says how the values of a block are coded. It is the low three bits of the
// block's first byte; the other five are its parameter. A gap is the number of
// values left out before a value; the block's last value is known from the list
// and not coded.
//
// Elias-Fano is not among them: with as many low bits it is never smaller than
// Rice, and a block is decoded whole. A bitmap is Rice without low bits.
type coding uint8

const (
	// codingPacked: the gaps, each of as many bits as the parameter says.
	codingPacked coding = iota
	// codingRice: the gaps, each as its part above the parameter's bits in unary
	// (zeros and a one), then the low bits.
	codingRice
	// codingRuns: by turns a gap and a run's length less one, as uvarints.
	codingRuns
	// codingBytes: the gaps as uvarints.
	codingBytes

	codings
)

const codingBits = 3

// blockEncoder chooses the smallest coding of a block.
type blockEncoder struct {
	gaps [blockSize]uint32
	n    int // values coded: all but the last one
	// span is the number of values that could stand before the last.
	span uint64
}

// measure sets the block to code: values ascending from first or later.
func (e *blockEncoder) measure(first uint64, values []uint32) {
	e.n = len(values) - 1
	e.span = uint64(values[e.n]) - first
	for i, v := range values[:e.n] {
		e.gaps[i] = v - uint32(first)
		first = uint64(v) + 1
	}
}

// append appends the block. One of a single value, or whose values follow each
// other without a gap, takes no bytes.
func (e *blockEncoder) append(dst []byte) []byte {
	if e.n == 0 || uint64(e.n) == e.span {
		return dst
	}
	code, param := e.choose()
	dst = append(dst, byte(code)|byte(param<<codingBits))
	switch code {
	case codingPacked:
		return appendPacked(dst, e.gaps[:e.n], param)
	case codingRice:
		return e.appendRice(dst, param)
	case codingRuns:
		return e.appendRuns(dst)
	default:
		return e.appendBytes(dst)
	}
}

// choose returns the coding of the fewest bytes, the first of equal ones.
func (e *blockEncoder) choose() (best coding, param uint) {
	width, runs, least := e.scan()
	best = codingBytes
	consider := func(code coding, with uint, size uint64) {
		if size < least || size == least && code < best {
			best, param, least = code, with, size
		}
	}
	n := uint64(e.n)
	consider(codingRuns, 0, runs)
	low := uint(max(bits.Len64(e.span/n), 1) - 1)
	for k := low - min(low, 2); k <= low; k++ {
		consider(codingRice, k, byteLen(e.riceBits(k)))
	}
	consider(codingPacked, width, byteLen(n*uint64(width)))
	return best, param
}

// scan returns the bits of the largest gap, and the bytes of runs and of uvarints.
func (e *blockEncoder) scan() (width uint, runs, bytes uint64) {
	var all uint32
	run := uint64(0)
	for i, gap := range e.gaps[:e.n] {
		all |= gap
		size := uvarintLen(uint64(gap))
		bytes += size
		if gap > 0 || i == 0 {
			if i > 0 {
				runs += uvarintLen(run)
			}
			runs += size
			run = 0
		} else {
			run++
		}
	}
	return uint(bits.Len32(all)), runs + uvarintLen(run), bytes
}

func uvarintLen(v uint64) uint64 { return uint64(max(bits.Len64(v), 1)+6) / 7 }

func (e *blockEncoder) riceBits(k uint) uint64 {
	total := uint64(e.n) * uint64(k+1)
	for _, gap := range e.gaps[:e.n] {
		total += uint64(gap >> k)
	}
	return total
}

func (e *blockEncoder) appendRice(dst []byte, k uint) []byte {
	w := bitWriter{dst: dst}
	for _, gap := range e.gaps[:e.n] {
		w.unary(uint64(gap >> k))
		w.put(uint64(gap)&(1<<k-1), k)
	}
	return w.flush()
}

func (e *blockEncoder) appendRuns(dst []byte) []byte {
	for i := 0; i < e.n; {
		dst = binary.AppendUvarint(dst, uint64(e.gaps[i]))
		start := i
		for i++; i < e.n && e.gaps[i] == 0; i++ {
		}
		dst = binary.AppendUvarint(dst, uint64(i-start-1))
	}
	return dst
}

func (e *blockEncoder) appendBytes(dst []byte) []byte {
	for _, gap := range e.gaps[:e.n] {
		dst = binary.AppendUvarint(dst, uint64(gap))
	}
	return dst
}
