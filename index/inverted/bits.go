package inverted

import (
	"encoding/binary"
	"math/bits"
)

// bitWriter collects bits, the first bit lowest. It stores whole words and advances by the full
// bytes, so that no number of bits needs a branch.
type bitWriter struct {
	data    []byte // with spare room
	at      int    // number of full bytes
	pending uint64
	n       uint // bits in pending, fewer than 8
}

// reset drops all bits and keeps the memory.
func (w *bitWriter) reset() { w.at, w.pending, w.n = 0, 0, 0 }

// room makes room for the next n bytes.
func (w *bitWriter) room(size int) {
	if need := w.at + size + 8; need > len(w.data) {
		grown := make([]byte, max(need, len(w.data)*3/2))
		copy(grown, w.data[:w.len()])
		w.data = grown
	}
}

// put appends the low width bits of v, whose other bits must be zero. width is at most 56, and
// there must be room.
func (w *bitWriter) put(v uint64, width uint) {
	w.pending |= v << (w.n % 64)
	w.n += width
	binary.LittleEndian.PutUint64(w.data[w.at:], w.pending)
	w.at += int(w.n / 8)
	w.pending >>= w.n & 56
	w.n %= 8
}

// gamma appends v, which is not 0, in Elias's gamma code: as many zeros as v has bits below its
// highest one, a one, and those bits.
func (w *bitWriter) gamma(v uint32) {
	k := uint(bits.Len32(v)) - 1
	w.put(1<<k, k+1)
	w.put(uint64(v)&(1<<k-1), k)
}

// pad fills the last byte with zeros.
func (w *bitWriter) pad() {
	if w.n > 0 {
		w.at++
		w.pending, w.n = 0, 0
	}
}

// bitLen returns the number of bits so far, len that of the bytes that they take.
func (w *bitWriter) bitLen() int { return w.at*8 + int(w.n) }
func (w *bitWriter) len() int    { return w.at + int(w.n+7)/8 }

// bytes returns all bits, padded to a whole byte.
func (w *bitWriter) bytes() []byte { return w.data[:w.len()] }

// bits appends all bits of another writer.
func (w *bitWriter) bits(other *bitWriter) {
	w.room(other.len())
	data := other.data[:other.at]
	for ; len(data) >= 4; data = data[4:] {
		w.put(uint64(binary.LittleEndian.Uint32(data)), 32)
	}
	for _, c := range data {
		w.put(uint64(c), 8)
	}
	w.put(other.pending, other.n)
}

// packed appends numbers of width bits each, at most 56.
func (w *bitWriter) packed(numbers []uint32, width uint) {
	w.room(len(numbers) * 8)
	for _, v := range numbers {
		w.put(uint64(v), width)
	}
}

// bitReader reads what bitWriter wrote. Past the end it reads zeros and continues counting, so that
// one check of overrun after a loop is enough.
type bitReader struct {
	data []byte
	pos  uint // in bits
}

// loadedBits is the least number of bits that load returns.
const loadedBits = 57

// load returns at least loadedBits from pos on, lowest first.
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

// gamma reads a number in Elias's gamma code. It returns 0, which has no code, if the next bits are
// at least 32 zeros.
func (r *bitReader) gamma() uint64 {
	k := uint(bits.TrailingZeros32(uint32(r.load())))
	if r.pos += k + 1; k >= 32 {
		return 0
	}
	return 1<<k | r.get(k)
}

// overrun reports whether more was read than there is.
func (r *bitReader) overrun() bool { return r.pos > uint(len(r.data))*8 }

// packedAt returns the i-th of the width-bit numbers in data after the first after bits. width is
// at most 56. A number past the end is 0.
func packedAt(data []byte, after uint, i int, width uint) uint64 {
	r := bitReader{data: data, pos: after + uint(i)*width}
	return r.get(width)
}
