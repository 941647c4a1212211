package docstore

import (
	"math"
	"slices"
)

// Work counts what was decoded.
type Work struct {
	// UnitsDecoded counts units, BytesDecoded the bytes that they hold.
	UnitsDecoded, BytesDecoded uint64
}

// noUnit is the number of no unit.
const noUnit = math.MaxUint32

// unitBuffer decodes units and holds the last one. One goroutine at a time.
type unitBuffer struct {
	Work
	unit uint32
	data [SuperblockSize]byte
}

// unitSize is the decoded size of the unit that holds offset off of a text.
func unitSize(off, length uint64) int {
	return int(min(length-off/SuperblockSize*SuperblockSize, SuperblockSize))
}

// appendRange appends [off, end) of a text of length bytes whose first unit is
// first; end is at most length. On an error dst comes back unchanged.
func (b *unitBuffer) appendRange(dst []byte, u *units, first uint32, length, off, end uint64) ([]byte, error) {
	out := slices.Grow(dst, int(end-off))
	for off < end {
		at, size := int(off%SuperblockSize), unitSize(off, length)
		take := int(min(uint64(size-at), end-off))
		unit := first + uint32(off/SuperblockSize)
		next := out[:len(out)+take]
		if take == size && unit != b.unit { // decoded in place
			if err := u.decode(next[len(out):], unit); err != nil {
				return dst, err
			}
			b.count(size)
		} else {
			data, err := b.get(u, unit, size)
			if err != nil {
				return dst, err
			}
			copy(next[len(out):], data[at:])
		}
		out, off = next, off+uint64(take)
	}
	return out, nil
}

// get returns a unit of size decoded bytes, good until the next call.
func (b *unitBuffer) get(u *units, unit uint32, size int) ([]byte, error) {
	if b.unit != unit {
		b.unit = noUnit
		if err := u.decode(b.data[:size], unit); err != nil {
			return nil, err
		}
		b.unit = unit
		b.count(size)
	}
	return b.data[:size], nil
}

func (b *unitBuffer) count(size int) {
	b.UnitsDecoded++
	b.BytesDecoded += uint64(size)
}
