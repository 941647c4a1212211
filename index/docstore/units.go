package docstore

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
)

const (
	// unitsHeaderSize is the size of the header of a section of units.
	unitsHeaderSize = 8
	// maxUnits is the most units in a section: their offsets are one list.
	maxUnits = eliasfano.MaxLen - 1
)

var le = binary.LittleEndian

// unitWriter writes a section of units; it remembers two bytes for each.
type unitWriter struct {
	w       io.Writer
	enc     encoder
	lengths []uint16
}

func newUnitWriter(w io.Writer, codec Codec) (*unitWriter, error) {
	if err := codec.check(); err != nil {
		return nil, err
	}
	header := le.AppendUint32(nil, uint32(codec))
	if _, err := w.Write(le.AppendUint32(header, SuperblockSize)); err != nil {
		return nil, fmt.Errorf("write the header of units: %w", err)
	}
	return &unitWriter{w: w}, nil
}

// add writes a unit of 1 to SuperblockSize bytes.
func (u *unitWriter) add(unit []byte) error {
	if len(u.lengths) == maxUnits {
		return fmt.Errorf("a shard holds at most %d units", maxUnits)
	}
	encoded := u.enc.encode(unit)
	if _, err := u.w.Write(encoded); err != nil {
		return fmt.Errorf("write unit %d: %w", len(u.lengths), err)
	}
	u.lengths = append(u.lengths, uint16(len(encoded)))
	return nil
}

// writeOffsets writes where the units start, and the last one ends.
func (u *unitWriter) writeOffsets(w *format.Writer, tag format.Tag) error {
	end := uint64(unitsHeaderSize)
	for _, n := range u.lengths {
		end += uint64(n)
	}
	return writeList(w, tag, len(u.lengths)+1, end+1, sums(unitsHeaderSize, u.lengths))
}

// sums yields first, and the sum of it and more and more of the lengths.
func sums[T uint16 | uint32](first uint64, lengths []T) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		sum := first
		if !yield(sum) {
			return
		}
		for _, n := range lengths {
			sum += uint64(n)
			if !yield(sum) {
				return
			}
		}
	}
}

// writeList writes a section that is one list of n values below universe.
func writeList(w *format.Writer, tag format.Tag, n int, universe uint64, values iter.Seq[uint64]) error {
	b := eliasfano.NewBuilder(n, universe)
	for v := range values {
		if err := b.Add(v); err != nil {
			return fmt.Errorf("section %s: %w", tag, err)
		}
	}
	_ = w.Begin(tag, format.Required) // errors stay and come out of End
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("section %s: %w", tag, err)
	}
	return w.End()
}

// units reads a section of units. Safe for concurrent use.
type units struct {
	section format.Section
	offsets eliasfano.Column
}

// open finds the sections of n units that hold total bytes when decoded.
func (u *units) open(f *format.File, data, offsets format.Tag, n uint32, total uint64) error {
	var err error
	if u.section, err = f.Need(data); err != nil {
		return err
	}
	header, err := u.section.Bytes(0, unitsHeaderSize)
	if err != nil {
		return err
	}
	if err := Codec(le.Uint32(header)).check(); err != nil {
		return fmt.Errorf("shard %s, section %s: %w", f.Name(), data, err)
	}
	size := uint64(u.section.Len())
	switch {
	case le.Uint32(header[4:]) != SuperblockSize:
		return u.section.Corruptf(4, "units of %d bytes, not %d", le.Uint32(header[4:]), SuperblockSize)
	case total > size*maxExpansion || total > uint64(n)*SuperblockSize:
		return u.section.Corruptf(0, "%d bytes are impossible in %d units of %d bytes", total, n, size)
	case n > maxUnits:
		return u.section.Corruptf(0, "%d units are more than possible", n)
	}
	list, err := f.Need(offsets)
	if err != nil {
		return err
	}
	u.offsets.Init(list, int(n)+1, size+1)
	return nil
}

// decode decodes a unit whose decoded length is that of dst.
func (u *units) decode(dst []byte, unit uint32) error {
	offsets, err := u.offsets.List()
	if err != nil {
		return err
	}
	from, to := offsets.At2(int(unit))
	encoded, err := u.section.Bytes(int64(from), int64(to)-int64(from))
	if err != nil {
		return err
	}
	if err := decodeUnit(dst, encoded); err != nil {
		return u.section.Corruptf(int64(from), "unit %d: %v", unit, err)
	}
	return nil
}
