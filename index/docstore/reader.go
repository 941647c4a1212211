package docstore

import (
	"bytes"
	"slices"
)

// Reader decodes contents. It keeps the last unit decoded, so reading on in
// the same place costs nothing more. One goroutine at a time; a Content may
// have any number of them.
type Reader struct {
	// UnitsDecoded and BytesDecoded count the work done: units decoded and the
	// bytes they hold.
	UnitsDecoded, BytesDecoded uint64

	c    *Content
	buf  unitBuffer
	blob uint32 // whose span is known
	span span
	ok   bool
}

// NewReader returns a reader; about 4 KiB.
func (c *Content) NewReader() *Reader {
	return &Reader{c: c, buf: unitBuffer{unit: noUnit}}
}

func (r *Reader) locate(blob uint32) (span, error) {
	if r.ok && r.blob == blob {
		return r.span, nil
	}
	s, err := r.c.locate(blob)
	if err != nil {
		return span{}, err
	}
	r.blob, r.span, r.ok = blob, s, true
	return s, nil
}

// Append appends n bytes from offset off of a blob to dst; fewer, or none,
// where the blob ends before. On an error dst comes back unchanged.
func (r *Reader) Append(dst []byte, blob, off, n uint32) ([]byte, error) {
	s, err := r.locate(blob)
	if err != nil {
		return dst, err
	}
	if off >= s.length {
		return dst, nil
	}
	end := off + min(n, s.length-off)
	out := slices.Grow(dst, int(end-off))
	for off < end {
		at := off % SuperblockSize
		size := s.unitSize(off)
		take := min(size-at, end-off)
		unit := s.first + off/SuperblockSize
		if take == size && unit != r.buf.unit {
			out, err = r.appendWhole(out, unit, size)
		} else {
			out, err = r.appendPart(out, unit, size, at, take)
		}
		if err != nil {
			return dst, err
		}
		off += take
	}
	return out, nil
}

// unitSize is the decoded size of the unit that holds offset off.
func (s span) unitSize(off uint32) uint32 {
	return min(s.length-off/SuperblockSize*SuperblockSize, SuperblockSize)
}

// appendWhole decodes a unit in place.
func (r *Reader) appendWhole(dst []byte, unit, size uint32) ([]byte, error) {
	out := dst[:len(dst)+int(size)]
	if err := r.c.units.decode(out[len(dst):], unit); err != nil {
		return dst, err
	}
	r.count(size)
	return out, nil
}

func (r *Reader) appendPart(dst []byte, unit, size, at, take uint32) ([]byte, error) {
	data, err := r.unit(unit, size)
	if err != nil {
		return dst, err
	}
	return append(dst, data[at:at+take]...), nil
}

// unit returns a decoded unit, good until the next one.
func (r *Reader) unit(unit, size uint32) ([]byte, error) {
	data, decoded, err := r.buf.get(&r.c.units, unit, int(size))
	if decoded {
		r.count(size)
	}
	return data, err
}

func (r *Reader) count(size uint32) {
	r.UnitsDecoded++
	r.BytesDecoded += uint64(size)
}

// LinesBefore counts the newlines of a blob before offset off, or all of them
// when the blob ends before. It decodes at most one unit.
func (r *Reader) LinesBefore(blob, off uint32) (uint32, error) {
	s, err := r.locate(blob)
	if err != nil {
		return 0, err
	}
	list, err := r.c.lines.List()
	if err != nil {
		return 0, err
	}
	off = min(off, s.length)
	whole := off / SuperblockSize
	from, to := list.At(int(s.first)), list.At(int(s.first+whole))
	if to < from || to-from > uint64(whole)*SuperblockSize {
		return 0, r.c.lines.Corruptf("blob %d has %d newlines before byte %d", blob, int64(to-from), whole*SuperblockSize)
	}
	lines := uint32(to - from)
	if rest := off % SuperblockSize; rest > 0 {
		data, err := r.unit(s.first+whole, s.unitSize(off))
		if err != nil {
			return 0, err
		}
		lines += uint32(bytes.Count(data[:rest], newline))
	}
	return lines, nil
}
