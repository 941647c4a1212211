package inverted

import (
	"errors"
	"math"
)

// Possible faults of a block's bits. The index adds file and section.
var (
	errBlockEnds  = errors.New("a block of postings ends too early")
	errBlockOrder = errors.New("a block of postings leaves its bounds")
)

// blockReader decodes a block as far as needed. It allocates nothing.
type blockReader struct {
	gaps gapDecoder
	bits bitReader
	end  uint // in bits
}

// open starts block b of the list and returns its part of values. The last value is set, and of the
// others the first ones, as known returns.
func (r *blockReader) open(l *rawList, b int, values *[blockSize]uint32) ([]uint32, error) {
	from, to := l.span(b)
	last := l.lastOf(b)
	switch {
	case from > to || to > uint(len(l.data))*8:
		return nil, errBlockEnds
	case last > l.last:
		return nil, errBlockOrder
	}
	block := values[:l.blockLen(b)]
	block[len(block)-1] = last
	r.bits, r.end = bitReader{data: l.data, pos: from}, to
	if err := r.gaps.start(&r.bits, l.firstOf(b), block); err != nil {
		return nil, err
	}
	return block, r.check()
}

// until decodes until a value is at least x, or until all values except the last are decoded.
func (r *blockReader) until(x uint64) error {
	if err := r.gaps.until(&r.bits, x); err != nil {
		return err
	}
	return r.check()
}

func (r *blockReader) check() error {
	if r.bits.pos > r.end {
		return errBlockEnds
	}
	return nil
}

// known returns how many of the block's first values are decoded.
func (r *blockReader) known(block []uint32) int {
	if len(r.gaps.values) == 0 {
		return len(block)
	}
	return len(block) - 1 - len(r.gaps.values)
}

// gapDecoder turns gaps into values. next exceeds 32 bits only if the block is corrupt, and it
// cannot overflow: a gap is below 1<<39.
type gapDecoder struct {
	next, last uint64
	values     []uint32 // those before the last one that are still to be decoded
	codes      *[1 << gapCodeBits]decodedGap
	low        uint
}

// start prepares the decoder for a block of values at or after first. The last one is set already.
// A block without a code of gaps is decoded immediately.
func (d *gapDecoder) start(r *bitReader, first uint64, values []uint32) error {
	n := len(values) - 1
	last := uint64(values[n])
	if last < first || last-first < uint64(n) {
		return errBlockOrder
	}
	d.next, d.last, d.values = first, last, values[:n]
	if last-first == uint64(n) {
		for i := range d.values {
			d.values[i] = uint32(first) + uint32(i)
		}
		d.values = nil
		return nil
	}
	if n == 0 {
		return nil
	}
	if r.get(1) == codingRuns {
		return d.runs(r)
	}
	d.scale()
	return nil
}

// scale finds the code for the gaps.
func (d *gapDecoder) scale() {
	scale, low := gapScale(d.last-d.next-uint64(len(d.values)), len(d.values))
	d.codes, d.low = &gaps().decode[scale], low
}

// check fails unless the bits were enough and the values are below the last one.
func (d *gapDecoder) check(r *bitReader) error {
	switch {
	case r.overrun():
		return errBlockEnds
	case d.next > d.last:
		return errBlockOrder
	}
	return nil
}

// until decodes until a value is at least x. It decodes as many gaps at once as the bits of one
// load certainly have.
func (d *gapDecoder) until(r *bitReader, x uint64) error {
	low, next, skipped := d.low, d.next, uint64(1)<<d.low
	enough := loadedBits - gapCodeBits - topMagnitude - low // low is at most 18
	values := d.values
	for len(values) > 0 && next <= x {
		v := r.load()
		used, n := uint(0), 0
		for ; n < len(values) && used <= enough; n++ {
			code := d.codes[v%(1<<gapCodeBits)]
			k, total := uint(code.magnitude)+low, uint(code.total)+low
			above := uint64(1) << (k & 63)
			next += above - skipped + v>>((total-k)&63)&(above-1)
			v >>= total & 63
			used += total
			values[n] = uint32(next)
			next++
		}
		r.pos += used
		values = values[n:]
	}
	d.next, d.values = next, values
	return d.check(r)
}

func (d *gapDecoder) runs(r *bitReader) error {
	next := d.next + math.MaxUint64 // 1 is added to the first gap
	for i := 0; i < len(d.values); {
		gap, run := r.gamma(), r.gamma()
		if gap == 0 || run == 0 || run > uint64(len(d.values)-i) {
			return errBlockEnds
		}
		next += gap
		for end := i + int(run); i < end; i++ {
			d.values[i] = uint32(next)
			next++
		}
	}
	d.next, d.values = next, nil
	return d.check(r)
}
