package format

import "encoding/binary"

// Decoder reads fields one after the other from bytes that may be hostile. The
// first error stays: later reads return zero values, so that a caller checks
// Err once at the end. Lengths are checked against what is left before
// anything is returned, and nothing is allocated but strings and errors. A
// copy goes on from the same place on its own.
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

// Err is the first error, always a *CorruptError.
func (d *Decoder) Err() error { return d.err }

// Left is the number of bytes not read yet; zero after an error.
func (d *Decoder) Left() int {
	if d.err != nil {
		return 0
	}
	return len(d.data) - d.off
}

// Failf makes the error of a value that is out of its bounds, unless there
// already is one.
func (d *Decoder) Failf(format string, args ...any) {
	if d.err == nil {
		d.err = corruptf(d.file, d.section.String(), d.base+int64(d.off), format, args...)
	}
}

// End fails when bytes are left.
func (d *Decoder) End() error {
	if n := d.Left(); n > 0 {
		d.Failf("%d bytes too many", n)
	}
	return d.err
}

// Bytes returns the next n bytes, as a part of the data.
func (d *Decoder) Bytes(n int) []byte {
	if n < 0 || n > d.Left() {
		d.Failf("%d bytes are wanted, %d are left", n, d.Left())
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

// Uvarint reads a number in groups of seven bits, lowest first. A longer form
// than needed is refused, so that each number has one form.
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

// Count reads how many things follow that take at least size bytes each: more
// than fit into what is left is refused, so that the caller may allocate them.
func (d *Decoder) Count(size int) int {
	n := d.Uvarint()
	if n > uint64(d.Left()/max(size, 1)) {
		d.Failf("%d things do not fit into %d bytes", n, d.Left())
		return 0
	}
	return int(n)
}

// BytesWithLength reads a length and as many bytes.
func (d *Decoder) BytesWithLength() []byte { return d.Bytes(d.Count(1)) }

// String reads a length and as many bytes, as a string of its own.
func (d *Decoder) String() string { return string(d.BytesWithLength()) }

// AppendString appends what Decoder.String reads.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}
