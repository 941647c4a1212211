package docstore

import (
	"math"
	"slices"
)

// Work counts what was decoded.
type Work struct {
	// UnitsDecoded counts units, BytesDecoded their bytes.
	UnitsDecoded, BytesDecoded uint64
}

// noUnit stands for no unit and for no dictionary.
const noUnit = math.MaxUint32

// unitBuffer decodes units of one text. It keeps the last one after its dictionary, as far as it
// was needed. It takes 64 KiB with dictionaries of full length, and up to 256 KiB for the units
// that it keeps. Call forget before using a zero value. It is not safe for concurrent use.
type unitBuffer struct {
	Work
	kept keptUnits

	unit, dict uint32
	start      int    // of the unit in data: the length of the dictionary
	data       []byte // the dictionary, the unit, and a margin for the decoder
	decoder    decoder
}

// forget empties the buffer, as before the first unit of a text.
func (b *unitBuffer) forget() {
	b.unit, b.dict = noUnit, noUnit
	b.kept.n = 0
	b.decoder.encoded = nil
}

// maxKept is the most units that keptUnits keeps.
const maxKept = 64

// keptUnits has copies of the first units decoded. A search that decodes few scattered units reads
// nearly all of them again to show what it found, and each would need its dictionary again. A
// search that decodes many pays for 64 copies.
type keptUnits struct {
	n       int
	units   [maxKept]uint32
	lengths [maxKept]uint16 // how much of each is there
	data    []byte
}

// find returns the first bytes of a unit if they were kept.
func (k *keptUnits) find(unit uint32, n int) ([]byte, bool) {
	i := slices.Index(k.units[:k.n], unit)
	if i < 0 || int(k.lengths[i]) < n {
		return nil, false
	}
	return k.data[i*SuperblockSize:][:n], true
}

// keep copies the decoded part of a unit, while there is room.
func (k *keptUnits) keep(unit uint32, data []byte) {
	i := slices.Index(k.units[:k.n], unit)
	if i < 0 {
		if k.n == maxKept {
			return
		}
		if k.data == nil {
			k.data = make([]byte, maxKept*SuperblockSize)
		}
		i, k.n = k.n, k.n+1
	}
	copy(k.data[i*SuperblockSize:], data)
	k.units[i], k.lengths[i] = unit, uint16(len(data))
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
		data, err := b.get(u, first+uint32(off/SuperblockSize), size, to)
		if err != nil {
			return dst, err
		}
		data = data[at:]
		out, off = append(out, data...), off+uint64(len(data))
	}
	return out, nil
}

// decodeAhead is how much more of a unit is decoded than requested: the rest of the line is often
// needed next.
const decodeAhead = 128

// get returns the first n bytes of a unit that has size bytes. They are valid until the next call.
func (b *unitBuffer) get(u *units, unit uint32, size, n int) ([]byte, error) {
	if b.unit != unit {
		if data, ok := b.kept.find(unit, n); ok {
			return data, nil
		}
		b.unit = noUnit
		if err := b.begin(u, unit, size); err != nil {
			return nil, err
		}
		b.unit = unit
		b.UnitsDecoded++
	}
	if known := int(b.decoder.at) - b.start; known < n {
		if err := b.decoder.until(b.data, b.start+min(n+decodeAhead, size)); err != nil {
			b.unit = noUnit
			return nil, u.corrupt(unit, err)
		}
		now := int(b.decoder.at) - b.start
		b.BytesDecoded += uint64(now - known)
		b.kept.keep(unit, b.data[b.start:b.start+now])
	}
	return b.data[b.start : b.start+n], nil
}

// begin prepares the decoder for a unit, with its dictionary before it.
func (b *unitBuffer) begin(u *units, unit uint32, size int) error {
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
	if err := b.decoder.begin(b.start, size, encoded); err != nil {
		return u.corrupt(unit, err)
	}
	return nil
}
