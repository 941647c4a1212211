package postings

import (
	"encoding/binary"
	"errors"
	"math"
)

// What may be wrong with a block's bytes. The index adds file and section.
var (
	errBlockCoding = errors.New("unknown coding of a block of postings")
	errBlockEnds   = errors.New("a block of postings ends too early")
	errBlockOrder  = errors.New("a block of postings leaves its bounds")
)

// decodeBlock decodes into values, of which the last one is set already, a block
// that may hold first and what follows. It allocates nothing.
func decodeBlock(data []byte, first uint64, values []uint32) error {
	n := len(values) - 1
	last := uint64(values[n])
	if last < first || last-first < uint64(n) {
		return errBlockOrder
	}
	if n == 0 {
		return nil
	}
	if last-first == uint64(n) {
		for i := range values {
			values[i] = uint32(first) + uint32(i)
		}
		return nil
	}
	if len(data) == 0 {
		return errBlockEnds
	}
	code, param := coding(data[0]&(1<<codingBits-1)), uint(data[0]>>codingBits)
	return decodeCoded(code, param, data[1:], first, values)
}

func decodeCoded(code coding, param uint, data []byte, first uint64, values []uint32) error {
	d := gapDecoder{next: first, last: uint64(values[len(values)-1]), values: values[:len(values)-1]}
	bits := bitReader{data: data}
	switch code {
	case codingPacked:
		d.packed(&bits, param)
	case codingRice:
		d.rice(&bits, param)
	case codingRuns:
		return d.runs(data)
	case codingBytes:
		return d.bytes(data)
	default:
		return errBlockCoding
	}
	if bits.overrun() {
		return errBlockEnds
	}
	return d.bounds()
}

// gapDecoder turns gaps into values. next is above any 32-bit number only when
// the block is corrupt, and it cannot overflow: a gap is below 1<<38.
type gapDecoder struct {
	next, last uint64
	values     []uint32
}

// bounds checks that all values stand before the last.
func (d *gapDecoder) bounds() error {
	if d.next > d.last {
		return errBlockOrder
	}
	return nil
}

func (d *gapDecoder) packed(r *bitReader, width uint) {
	next := d.next
	for i := range d.values {
		next += r.get(width)
		d.values[i] = uint32(next)
		next++
	}
	d.next = next
}

func (d *gapDecoder) rice(r *bitReader, k uint) {
	next := d.next
	for i := range d.values {
		high := min(r.unary(), math.MaxUint32>>k)
		next += high<<k | r.get(k)
		d.values[i] = uint32(next)
		next++
	}
	d.next = next
}

func (d *gapDecoder) runs(data []byte) error {
	next := d.next
	for i := 0; i < len(d.values); {
		gap, n := binary.Uvarint(data)
		run, m := binary.Uvarint(data[max(n, 0):])
		if n <= 0 || m <= 0 || gap > math.MaxUint32 || run >= uint64(len(d.values)-i) {
			return errBlockEnds
		}
		data = data[n+m:]
		next += gap
		for end := i + int(run); i <= end; i++ {
			d.values[i] = uint32(next)
			next++
		}
	}
	d.next = next
	return d.bounds()
}

func (d *gapDecoder) bytes(data []byte) error {
	next := d.next
	for i := range d.values {
		gap, n := binary.Uvarint(data)
		if n <= 0 || gap > math.MaxUint32 {
			return errBlockEnds
		}
		data = data[n:]
		next += gap
		d.values[i] = uint32(next)
		next++
	}
	d.next = next
	return d.bounds()
}
