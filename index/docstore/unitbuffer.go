package docstore

import (
	"math"
	"slices"
)

// Work counts what was read. It does not show whether that had to be decoded or was in the cache, which
// depends on what others search for.
type Work struct {
	// UnitsDecoded counts units, each time that reading comes to another one, and BytesDecoded their bytes.
	UnitsDecoded, BytesDecoded uint64
}

// noUnit stands for no unit and for no dictionary.
const noUnit = math.MaxUint32

// unitBuffer decodes units of one text. It keeps the last one after its dictionary, and adds it to the cache. It takes up to 64 KiB.
// Call forget before using a zero value. It is not safe for concurrent use.
type unitBuffer struct {
	Work
	last uint32 // unit that was counted

	unit, dict uint32 // in data
	start      int    // of the unit in data: the length of the dictionary
	size       int    // of the unit in data; lists of a hostile shard may say several
	data       []byte // the dictionary, the unit, and a margin for the decoder
	kept       int    // units that were added to the cache
}

// forget empties the buffer, as before the first unit of a text.
func (b *unitBuffer) forget() {
	b.last, b.unit, b.dict, b.kept = noUnit, noUnit, noUnit, 0
}

// unitSize returns the decoded size of the unit with offset off of a text.
func unitSize(off, length uint64) int {
	return int(min(length-off/SuperblockSize*SuperblockSize, SuperblockSize))
}

// appendRange appends [off, end) of a text of length bytes whose first unit is first; end is at
// most length. On an error it returns dst unchanged.
func (b *unitBuffer) appendRange(dst []byte, u *units, first uint32, length, off, end uint64) ([]byte, error) {
	out := slices.Grow(dst, int(end-off))
	for off < end {
		at, size := int(off%SuperblockSize), unitSize(off, length)
		to := int(min(uint64(size), uint64(at)+end-off))
		var err error
		if out, err = b.append(out, u, first+uint32(off/SuperblockSize), size, at, to); err != nil {
			return dst, err
		}
		off += uint64(to - at)
	}
	return out, nil
}

// append appends the bytes [from, to) of a unit that has size bytes. On an error it returns dst unchanged.
func (b *unitBuffer) append(dst []byte, u *units, unit uint32, size, from, to int) ([]byte, error) {
	if unit != b.last {
		b.last = unit
		b.UnitsDecoded++
		b.BytesDecoded += uint64(size)
	}
	if unit != b.unit || to > b.size {
		key := cacheKey{u.text, unit}
		if out, ok := key.load(dst, from, to); ok {
			return out, nil
		}
		if err := b.decode(u, unit, size); err != nil {
			return dst, err
		}
		if b.kept++; b.kept <= mostKept {
			key.keep(b.data[b.start : b.start+size])
		}
	}
	return append(dst, b.data[b.start+from:b.start+to]...), nil
}

// decode decodes a unit after its dictionary.
func (b *unitBuffer) decode(u *units, unit uint32, size int) error {
	b.unit = noUnit
	if dict := u.dictionaryOf(unit); dict != b.dict {
		b.dict = noUnit
		data, err := u.dictionary(dict)
		if err != nil {
			return err
		}
		b.start = len(data)
		if need := b.start + SuperblockSize + decodeMargin; len(b.data) < need {
			b.data = make([]byte, need)
		}
		copy(b.data, data)
		b.dict = dict
	}
	encoded, err := u.encoded(unit)
	if err != nil {
		return err
	}
	if err := decodeUnit(b.data, b.start, size, encoded); err != nil {
		return u.corrupt(unit, err)
	}
	b.unit, b.size = unit, size
	return nil
}
