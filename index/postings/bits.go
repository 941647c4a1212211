package postings

import (
	"encoding/binary"
	"math/bits"
)

// bitWriter appends bits to bytes, the first bit lowest.
type bitWriter struct {
	dst     []byte
	pending uint64
	n       uint // bits in pending, fewer than 32 between calls
}

// put appends the low width bits of v, whose other bits must be zero; width is at
// most 32.
func (w *bitWriter) put(v uint64, width uint) {
	w.pending |= v << w.n
	w.n += width
	if w.n >= 32 {
		w.dst = binary.LittleEndian.AppendUint32(w.dst, uint32(w.pending))
		w.pending >>= 32
		w.n -= 32
	}
}

// unary appends as many zeros as it is told, and a one.
func (w *bitWriter) unary(zeros uint64) {
	for ; zeros >= 32; zeros -= 32 {
		w.put(0, 32)
	}
	w.put(1<<zeros, uint(zeros)+1)
}

// flush pads to a whole byte with zeros and returns all.
func (w *bitWriter) flush() []byte {
	for ; w.n > 0; w.n -= min(w.n, 8) {
		w.dst = append(w.dst, byte(w.pending))
		w.pending >>= 8
	}
	return w.dst
}

// bitReader reads what bitWriter wrote. Past the end it reads zeros and goes on
// counting, so that one look at overrun after a loop is enough.
type bitReader struct {
	data []byte
	pos  uint // in bits
}

// load returns at least 57 bits from pos on, lowest first.
func (r *bitReader) load() uint64 {
	i := r.pos / 8
	if i+8 <= uint(len(r.data)) {
		return binary.LittleEndian.Uint64(r.data[i:]) >> (r.pos % 8)
	}
	return r.loadEnd(i)
}

func (r *bitReader) loadEnd(i uint) (v uint64) {
	for shift := 0; i < uint(len(r.data)) && shift < 64; shift += 8 {
		v |= uint64(r.data[i]) << shift
		i++
	}
	return v >> (r.pos % 8)
}

// get reads width bits, at most 56.
func (r *bitReader) get(width uint) uint64 {
	v := r.load() & (1<<width - 1)
	r.pos += width
	return v
}

// unary reads zeros up to a one and returns how many. Where the data ends before
// a one it overruns.
func (r *bitReader) unary() (zeros uint64) {
	for r.pos < uint(len(r.data))*8 {
		v := r.load()
		if v != 0 {
			n := uint(bits.TrailingZeros64(v))
			r.pos += n + 1
			return zeros + uint64(n)
		}
		zeros += 56
		r.pos += 56
	}
	r.pos = uint(len(r.data))*8 + 1
	return zeros
}

// overrun reports whether more was read than there is.
func (r *bitReader) overrun() bool { return r.pos > uint(len(r.data))*8 }

// byteLen is the number of bytes that n bits take.
func byteLen(n uint64) uint64 { return (n + 7) / 8 }

// packedAt reads the i-th of the width-bit numbers in data, which must hold it;
// width is at most 32.
func packedAt(data []byte, i int, width uint) uint32 {
	r := bitReader{data: data, pos: uint(i) * width}
	return uint32(r.get(width))
}

// appendPacked appends numbers of width bits each, padded to a whole byte.
func appendPacked(dst []byte, numbers []uint32, width uint) []byte {
	w := bitWriter{dst: dst}
	for _, v := range numbers {
		w.put(uint64(v), width)
	}
	return w.flush()
}
