package docstore

import (
	"fmt"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
)

// sectionWriter writes sections one after the other. The first error stays.
type sectionWriter struct {
	w   *format.Writer
	err error
}

// write writes a section.
func (s *sectionWriter) write(tag format.Tag, data []byte) {
	if s.err == nil {
		s.err = s.w.WriteSection(tag, format.Required, data)
	}
}

// writeStarts writes where things of these lengths start, one after the other from start on, and where the last one ends.
func writeStarts[T uint16 | uint32](s *sectionWriter, tag format.Tag, start uint64, lengths []T) {
	end := start
	for _, n := range lengths {
		end += uint64(n)
	}
	list := eliasfano.NewBuilder(len(lengths)+1, end+1)
	_ = list.Add(start) // errors stay until WriteTo
	for _, n := range lengths {
		start += uint64(n)
		_ = list.Add(start)
	}
	s.writeList(tag, list)
}

// writeNumbers writes ascending numbers, each below limit.
func (s *sectionWriter) writeNumbers(tag format.Tag, numbers []uint32, limit uint32) {
	list := eliasfano.NewBuilder(len(numbers), uint64(limit))
	for _, n := range numbers {
		_ = list.Add(uint64(n)) // errors stay until WriteTo
	}
	s.writeList(tag, list)
}

func (s *sectionWriter) writeList(tag format.Tag, list *eliasfano.Builder) {
	if s.err != nil {
		return
	}
	_ = s.w.Begin(tag, format.Required) // errors stay, and End returns them
	if _, s.err = list.WriteTo(s.w); s.err != nil {
		s.err = fmt.Errorf("section %s: %w", tag, s.err)
		return
	}
	s.err = s.w.End()
}

// array is a section of items of one width, read in place.
type array struct {
	section format.Section
	width   uint8
}

// open finds the section, which must have n items of width bytes.
func (a *array) open(f *format.File, tag format.Tag, n uint32, width int) error {
	s, err := f.Need(tag)
	if err != nil {
		return err
	}
	if s.Len() != int64(n)*int64(width) {
		return s.Corruptf(0, "%d items of %d bytes, but the section has %d", n, width, s.Len())
	}
	a.section, a.width = s, uint8(width)
	return nil
}

// item returns the bytes of item i.
func (a *array) item(i uint32) ([]byte, error) {
	return a.section.Bytes(int64(i)*int64(a.width), int64(a.width))
}

// number returns item i as a number, which must be below limit.
func (a *array) number(i, limit uint32) (uint32, error) {
	b, err := a.item(i)
	if err != nil {
		return 0, err
	}
	var n uint32
	switch a.width {
	case 1:
		n = uint32(b[0])
	case 2:
		n = uint32(le.Uint16(b))
	case 4:
		n = le.Uint32(b)
	}
	if n >= limit {
		return 0, a.section.Corruptf(int64(i)*int64(a.width), "number %d, there are %d", n, limit)
	}
	return n, nil
}

// widthOf returns how many bytes a number of one of count things takes: none if there is at most
// one.
func widthOf(count int) int {
	switch {
	case count <= 1:
		return 0
	case count <= 1<<8:
		return 1
	case count <= 1<<16:
		return 2
	default:
		return 4
	}
}

// appendNumber appends a number of the width.
func appendNumber(dst []byte, n uint32, width int) []byte {
	return append(dst, le.AppendUint32(nil, n)[:width]...)
}
