package docstore

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inorder"
)

const (
	// unitsHeaderSize is the size of the header of a section of units.
	unitsHeaderSize = 12
	// maxUnits is the most units in a section, since one list has their
	// offsets.
	maxUnits = eliasfano.MaxLen - 1
)

var le = binary.LittleEndian

// unitWriter writes a section of units. It gathers the units that share a
// dictionary, and keeps two bytes for each unit that it has written.
type unitWriter struct {
	w             io.Writer
	effort        Effort
	perDictionary int // 0: no dictionaries

	gathered *unitRegion                 // units not encoded yet
	encoding *inorder.Queue[*unitRegion] // regions being encoded, or waiting to be written
	added    int
	lengths  []uint16 // of the units written

	dictionaries [][]byte
	dictBytes    uint64 // of all dictionaries
}

// newUnitWriter writes the header. Up to workers regions are encoded
// concurrently with the caller.
func newUnitWriter(w io.Writer, effort Effort, perDictionary, workers int) (*unitWriter, error) {
	if int(effort) >= len(encoders) {
		return nil, fmt.Errorf("unknown effort %d", effort)
	}
	header := le.AppendUint32(nil, codecLZ4)
	header = le.AppendUint32(header, SuperblockSize)
	if _, err := w.Write(le.AppendUint32(header, uint32(perDictionary))); err != nil {
		return nil, fmt.Errorf("write the header of units: %w", err)
	}
	return &unitWriter{w: w, effort: effort, perDictionary: perDictionary, encoding: inorder.New[*unitRegion](workers)}, nil
}

// units returns the number of units added.
func (u *unitWriter) units() int { return u.added }

// add adds a unit of 1 to SuperblockSize bytes.
func (u *unitWriter) add(unit []byte) error {
	if u.added == maxUnits {
		return fmt.Errorf("a shard holds at most %d units", maxUnits)
	}
	if u.gathered == nil {
		u.gathered = newUnitRegion()
	}
	u.gathered.add(unit)
	u.added++
	if u.gathered.full() {
		return u.encode()
	}
	return nil
}

// encode starts encoding the gathered units, and writes the regions whose turn
// it is.
func (u *unitWriter) encode() error {
	if region := u.gathered; region != nil {
		u.gathered = nil
		u.encoding.Start(func() *unitRegion {
			region.encode(u.effort, u.perDictionary > 0)
			return region
		})
	}
	for u.encoding.Full() {
		if err := u.writeNext(); err != nil {
			return err
		}
	}
	return nil
}

// flush writes all units.
func (u *unitWriter) flush() error {
	err := u.encode()
	for err == nil && !u.encoding.Empty() {
		err = u.writeNext()
	}
	return err
}

// abandon waits for the running encoders.
func (u *unitWriter) abandon() {
	for !u.encoding.Empty() {
		_, _ = u.encoding.Next()
	}
}

func (u *unitWriter) writeNext() error {
	region, _ := u.encoding.Next()
	if u.dictBytes += uint64(len(region.dict)); u.dictBytes > math.MaxUint32 {
		return fmt.Errorf("a shard holds at most %d bytes of dictionaries", uint32(math.MaxUint32))
	}
	u.dictionaries = append(u.dictionaries, region.dict)
	if _, err := u.w.Write(region.encoded); err != nil {
		return fmt.Errorf("write the units from %d on: %w", len(u.lengths), err)
	}
	u.lengths = append(u.lengths, region.lengths...)
	unitRegions.Put(region)
	return nil
}

// units reads a section of units. It is safe for concurrent use.
type units struct {
	text    uint32 // its number in the cache
	section format.Section
	offsets eliasfano.Column
	count   uint32

	dictionaries  format.Section
	perDictionary uint32 // units that share one; 0 without dictionaries
}

// unitTags are the sections of a text's units. Names have no dictionaries, so
// that tag is 0.
type unitTags struct{ data, offsets, dictionaries format.Tag }

// open finds the sections of n units that decode to total bytes.
func (u *units) open(f *format.File, tags unitTags, n uint32, total uint64) error {
	var err error
	u.text = texts.Add(1)
	if u.section, err = f.Need(tags.data); err != nil {
		return err
	}
	header, err := u.section.Bytes(0, unitsHeaderSize)
	if err != nil {
		return err
	}
	if codec := le.Uint32(header); codec != codecLZ4 {
		return fmt.Errorf("shard %s, section %s: units are in codec %d: %w", f.Name(), tags.data, codec, format.ErrVersion)
	}
	u.count, u.perDictionary = n, le.Uint32(header[8:])
	size := uint64(u.section.Len())
	switch {
	case le.Uint32(header[4:]) != SuperblockSize:
		return u.section.Corruptf(4, "units of %d bytes, not %d", le.Uint32(header[4:]), SuperblockSize)
	case total > size*maxExpansion || total > uint64(n)*SuperblockSize:
		return u.section.Corruptf(0, "%d bytes are impossible in %d units of %d bytes", total, n, size)
	case n > maxUnits:
		return u.section.Corruptf(0, "%d units are more than possible", n)
	case u.perDictionary > 0 && tags.dictionaries == 0:
		return u.section.Corruptf(8, "there are no dictionaries to be shared by %d units", u.perDictionary)
	}
	if tags.dictionaries != 0 {
		if u.dictionaries, err = f.Need(tags.dictionaries); err != nil {
			return err
		}
	}
	return u.offsets.OpenBoundaries(f, tags.offsets, n, size)
}

// announce announces that ascending units will be read; see format.Announcer. It ignores units that
// there are not.
func (u *units) announce(units iter.Seq[uint32]) error {
	if !u.section.Announces() {
		return nil
	}
	offsets, err := u.offsets.List()
	if err != nil {
		return err
	}
	encoded, dict := u.section.Announcer(), int64(-1)
	for unit := range units {
		if unit >= u.count {
			continue
		}
		from, to := offsets.At2(int(unit))
		encoded.Add(int64(from), int64(to)-int64(from))
		if d := int64(u.dictionaryOf(unit)); d != dict && u.perDictionary > 0 {
			// The ends of the dictionaries were not read yet. Most have the maximal size, and none is
			// larger.
			dict = d
			u.dictionaries.Soon(0, 4*int64(u.count/u.perDictionary+1))
			u.dictionaries.Soon(d*MaxDictionary, 2*MaxDictionary)
		}
	}
	encoded.Flush()
	return nil
}

// encoded returns the encoding of a unit.
func (u *units) encoded(unit uint32) ([]byte, error) {
	offsets, err := u.offsets.List()
	if err != nil {
		return nil, err
	}
	from, to := offsets.At2(int(unit))
	return u.section.Bytes(int64(from), int64(to)-int64(from))
}

// corrupt returns the error for a unit that could not be decoded.
func (u *units) corrupt(unit uint32, reason error) error {
	offsets, err := u.offsets.List()
	if err != nil {
		return err
	}
	return u.section.Corruptf(int64(offsets.At(int(unit))), "unit %d: %v", unit, reason)
}
