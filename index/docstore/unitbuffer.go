package docstore

import "slices"

// Work counts what was read. It does not show whether that had to be decoded or was in the cache, which
// depends on what others search for.
type Work struct {
	// UnitsDecoded counts units, each time that reading comes to another one, and BytesDecoded their bytes.
	UnitsDecoded, BytesDecoded uint64
}

// unitBuffer decodes units of any texts. It keeps the last one after its dictionary, and adds it to the cache. It takes up to 64 KiB.
// Its zero value is ready to use. It is not safe for concurrent use.
type unitBuffer struct {
	Work
	last cacheKey // unit that was counted

	unit, dict cacheKey // in data; dict has the number of a text's dictionary in place of a unit
	start      int      // of the unit in data: the length of the dictionary
	size       int      // of the unit in data; lists of a hostile shard may say several
	data       []byte   // the dictionary, the unit, and a margin for the decoder
	kept       int      // units that were added to the cache
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
	key := cacheKey{u.text, unit}
	if key != b.last {
		b.last = key
		b.UnitsDecoded++
		b.BytesDecoded += uint64(size)
	}
	if key != b.unit || to > b.size {
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
	b.unit = cacheKey{}
	if dict := (cacheKey{u.text, u.dictionaryOf(unit)}); dict != b.dict {
		b.dict = cacheKey{}
		data, err := u.dictionary(dict.unit)
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
	b.unit, b.size = cacheKey{u.text, unit}, size
	return nil
}
