package format

import (
	"encoding/binary"
	"unicode/utf8"
)

// Decoder reads successive fields from bytes that may be hostile. The first
// error stays: later reads return zero values, so that a caller checks Err once
// at the end. Lengths are checked against the remaining bytes before anything
// is returned, and it allocates only strings and errors. A copy continues
// independently from the same place.
type Decoder struct {
	data    []byte
	off     int
	err     error
	base    int64
	file    string
	section Tag
}

// NewDecoder decodes data; file and section are named in errors.
func NewDecoder(file string, section Tag, data []byte) Decoder {
	return Decoder{data: data, file: file, section: section}
}

// Err returns the first error, always a *CorruptError.
func (d *Decoder) Err() error { return d.err }

// Left returns the number of bytes that are not read yet; zero after an error.
func (d *Decoder) Left() int {
	if d.err != nil {
		return 0
	}
	return len(d.data) - d.off
}

// Failf sets the error for a value out of bounds, unless there already is an
// error.
func (d *Decoder) Failf(format string, args ...any) {
	if d.err == nil {
		d.err = corruptf(d.file, d.section.String(), d.base+int64(d.off), format, args...)
	}
}

// End fails if bytes are left.
func (d *Decoder) End() error {
	if n := d.Left(); n > 0 {
		d.Failf("%d bytes too many", n)
	}
	return d.err
}

// Bytes returns the next n bytes, as a part of the data.
func (d *Decoder) Bytes(n int) []byte {
	if n < 0 || n > d.Left() {
		d.Failf("%d bytes expected, %d left", n, d.Left())
		return nil
	}
	d.off += n
	return d.data[d.off-n : d.off : d.off]
}

// U8 reads a byte.
func (d *Decoder) U8() uint8 {
	if b := d.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// U32 reads four bytes.
func (d *Decoder) U32() uint32 {
	if b := d.Bytes(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

// U64 reads eight bytes.
func (d *Decoder) U64() uint64 {
	if b := d.Bytes(8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

// Uvarint reads a number in groups of seven bits, lowest first. It refuses a
// longer form than needed, so that each number has one form.
func (d *Decoder) Uvarint() uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.data[d.off:])
	if n <= 0 || n > 1 && d.data[d.off+n-1] == 0 {
		d.Failf("not a number in groups of seven bits")
		return 0
	}
	d.off += n
	return v
}

// UvarintMax reads a Uvarint that is at most limit.
func (d *Decoder) UvarintMax(limit uint64) uint64 {
	v := d.Uvarint()
	if v > limit {
		d.Failf("number %d is above %d", v, limit)
		return 0
	}
	return v
}

// Count reads the number of things that follow, each of at least size bytes. It
// refuses more than the remaining bytes can hold, so that the caller may
// allocate them.
func (d *Decoder) Count(size int) int {
	n := d.Uvarint()
	if n > uint64(d.Left()/max(size, 1)) {
		d.Failf("%d things do not fit into %d bytes", n, d.Left())
		return 0
	}
	return int(n)
}

// BytesWithLength reads a length and that many bytes.
func (d *Decoder) BytesWithLength() []byte { return d.Bytes(d.Count(1)) }

// String reads a length and that many bytes of UTF-8, and copies them into a string. Protocol
// buffers carry it, and one field that is not UTF-8 makes them refuse a whole answer.
func (d *Decoder) String() string {
	text := d.BytesWithLength()
	if !utf8.Valid(text) {
		d.Failf("%q is not UTF-8", text)
		return ""
	}
	return string(text)
}

// AppendString appends the form that Decoder.String reads.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}
