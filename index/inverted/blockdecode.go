package inverted

import (
	"errors"
	"math"
	"math/bits"
)

// Possible faults of a block's bits. The index adds file and section.
var (
	errBlockEnds  = errors.New("a block of postings ends too early")
	errBlockOrder = errors.New("a block of postings leaves its bounds")
	errCounts     = errors.New("counts of a word end too early, or are too large")
	errMasks      = errors.New("a block of masks ends too early, or belongs to superblocks without terms")
)

// MaxCount is the most often that a word can start in one superblock: other bytes separate any two
// words.
const MaxCount = 2048

// maxCountBits is the number of zeros at the start of the code of MaxCount.
const maxCountBits = 11

// superblocks reads those of a block, which begin with first or a later one and end with last.
func (r *bitReader) superblocks(values []uint32, first uint64, last uint32) error {
	n := len(values) - 1
	left := uint64(last) - first - uint64(n) // how many are missing
	if uint64(last) < first+uint64(n) {
		return errBlockOrder
	}
	values[n], values = last, values[:n]
	switch {
	case left == 0:
		for i := range values {
			values[i] = uint32(first) + uint32(i)
		}
		return nil
	case n == 0:
		return nil
	case r.get(1) == codingRuns:
		return r.runs(values, first, last)
	}
	return r.gaps(values, first, last)
}

// gaps reads the superblocks of a block before the last one, which are coded by the gaps between them. It reads as many at once as the bits of one
// load certainly have. next exceeds 32 bits only if the block is corrupt, and it cannot overflow: a gap is below 1<<39.
func (r *bitReader) gaps(values []uint32, next uint64, last uint32) error {
	scale, low := gapScale(uint64(last)-next-uint64(len(values)), len(values))
	codes, skipped := &gaps().decode[scale], uint64(1)<<low
	enough := loadedBits - gapCodeBits - topMagnitude - low // low is at most 18
	for len(values) > 0 {
		v := r.load()
		used, n := uint(0), 0
		for ; n < len(values) && used <= enough; n++ {
			code := codes[v%(1<<gapCodeBits)]
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
	return r.ordered(next, last)
}

// runs reads the superblocks of a block before the last one, which are coded by runs of successive ones.
func (r *bitReader) runs(values []uint32, next uint64, last uint32) error {
	next += math.MaxUint64 // 1 is added to the first gap
	for i := 0; i < len(values); {
		gap, run := r.gamma(), r.gamma()
		if gap == 0 || run == 0 || run > uint64(len(values)-i) {
			return errBlockEnds
		}
		next += gap
		for end := i + int(run); i < end; i++ {
			values[i] = uint32(next)
			next++
		}
	}
	return r.ordered(next, last)
}

// ordered fails unless the bits were enough and all values are below the last one.
func (r *bitReader) ordered(next uint64, last uint32) error {
	switch {
	case r.overrun():
		return errBlockEnds
	case next > uint64(last):
		return errBlockOrder
	}
	return nil
}

// definitions says for each posting of a block whether the word is defined in its superblock. It
// reads the bits in place; the zero value has none.
type definitions struct {
	data []byte
	pos  uint // in bits; 0 if none is marked, since another bit precedes them
}

// definitions skips the marks of n postings.
func (r *bitReader) definitions(n int) definitions {
	if r.get(1) == 0 {
		return definitions{}
	}
	d := definitions{r.data, r.pos}
	r.pos += uint(n)
	return d
}

// any reports whether a posting of the block is marked.
func (d *definitions) any() bool { return d.pos > 0 }

// at reports whether posting i of the block is marked.
func (d *definitions) at(i int) bool {
	at := d.pos + uint(i)
	return d.pos > 0 && at/8 < uint(len(d.data)) && d.data[at/8]>>(at%8)&1 == 1
}

// counts decodes gamma codes of counts up to MaxCount, as many at once as one load certainly has.
func (r *bitReader) counts(counts []uint16) error {
	const enough = loadedBits - 2*maxCountBits - 1
	for i := 0; i < len(counts); {
		v, used := r.load(), uint(0)
		for ; i < len(counts) && used <= enough; i++ {
			k := uint(bits.TrailingZeros64(v | 1<<(maxCountBits+1))) // above maxCountBits, the count is above MaxCount
			n := 1<<k | v>>(k+1)&(1<<k-1)
			if n > MaxCount {
				return errCounts
			}
			counts[i] = uint16(n)
			v >>= 2*k + 1
			used += 2*k + 1
		}
		r.pos += used
	}
	return nil
}
