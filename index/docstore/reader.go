package docstore

import "bytes"

// Reader decodes contents, or has them from the cache. It keeps the last unit that it decoded. It is not safe
// for concurrent use, but a Content may have any number of Readers.
type Reader struct {
	unitBuffer
	c *Content

	blob          uint32 // whose span is known, if ok
	first, length uint32 // its span
	ok            bool

	counted []byte // in which newlines were counted last
}

// NewReader returns a reader. It takes about 64 KiB. Its UnitsDecoded and BytesDecoded count what it has read so far.
func (c *Content) NewReader() *Reader {
	r := new(Reader)
	r.Reset(c)
	return r
}

// locate sets the span of a blob.
func (r *Reader) locate(blob uint32) (err error) {
	if !r.ok || r.blob != blob {
		r.first, r.length, err = r.c.Span(blob)
		r.blob, r.ok = blob, err == nil
	}
	return err
}

// Append appends n bytes from offset off of a blob to dst; fewer, or none, if the blob ends before. On an error it
// returns dst unchanged.
func (r *Reader) Append(dst []byte, blob, off, n uint32) ([]byte, error) {
	if err := r.locate(blob); err != nil || off >= r.length {
		return dst, err
	}
	end := off + min(n, r.length-off)
	return r.appendRange(dst, &r.c.units, r.first, uint64(r.length), uint64(off), uint64(end))
}

// LinesBefore counts the newlines of a blob before offset off, or all of them if the blob ends before. It decodes at
// most one unit.
func (r *Reader) LinesBefore(blob, off uint32) (uint32, error) {
	if err := r.locate(blob); err != nil {
		return 0, err
	}
	list, err := r.c.lines.List()
	if err != nil {
		return 0, err
	}
	off = min(off, r.length)
	whole := off / SuperblockSize
	from, to := list.At(int(r.first)), list.At(int(r.first+whole))
	if to < from || to-from > uint64(whole)*SuperblockSize {
		return 0, r.c.lines.Corruptf("blob %d has %d newlines before byte %d", blob, int64(to-from), whole*SuperblockSize)
	}
	lines := uint32(to - from)
	if rest := off % SuperblockSize; rest > 0 {
		r.counted, err = r.append(r.counted[:0], &r.c.units, r.first+whole, unitSize(uint64(off), uint64(r.length)), 0, int(rest))
		if err != nil {
			return 0, err
		}
		lines += uint32(bytes.Count(r.counted, newline))
	}
	return lines, nil
}

// Reset makes r a reader of c, like a new one: its memory can serve several Contents in turn. With nil it drops its
// reference.
func (r *Reader) Reset(c *Content) {
	r.c, r.ok = c, false
	r.Work, r.last, r.kept = Work{}, cacheKey{}, 0
}

// ResetOnce is Reset for who reads everything once, as merging does: nothing is added to the cache.
func (r *Reader) ResetOnce(c *Content) {
	r.Reset(c)
	r.kept = mostKept
}
