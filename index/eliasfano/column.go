package eliasfano

import (
	"sync/atomic"

	"github.com/trawl-search/trawl/index/format"
)

// Column is a section of a shard that is one list. Its first use reads it and checks its checksums.
// After Open it is safe for concurrent use. It must not be copied.
//
// An open shard has many of them, so it keeps only what cannot be computed: 32 bytes.
type Column struct {
	section  format.Section
	universe uint64
	n        uint32
	// shape has the number of bytes before the low bits, and above it the number of low bits, which
	// would take a division to compute; 0 until the list has been checked. Two goroutines that
	// check it at the same time store the same value.
	shape atomic.Uint32
}

// Open finds the section, which a shard must have. Its list must have that number of values, at most MaxLen, and that universe; a list
// with others is corrupt.
func (c *Column) Open(f *format.File, tag format.Tag, n int, universe uint64) (err error) {
	c.n, c.universe = uint32(n), universe
	c.section, err = f.Need(tag)
	return err
}

// OpenBoundaries is Open for the n+1 numbers from 0 to last where n things start and end.
func (c *Column) OpenBoundaries(f *format.File, tag format.Tag, n uint32, last uint64) error {
	return c.Open(f, tag, int(n)+1, last+1)
}

// List returns the list, which is valid until the shard is closed. It allocates nothing, but a
// caller that reads many values in a row should keep the list. The error is a *format.CorruptError,
// and is the same for every call.
func (c *Column) List() (List, error) {
	shape := c.shape.Load()
	if shape == 0 || c.n == 0 {
		return c.open()
	}
	l := layOut(int(c.n), c.universe, uint(shape%shapeHeader), int(shape/shapeHeader))
	return List{layout: l, data: c.section.Checked()}, nil
}

// Announce announces that the list will be read; see format.Announcer.
func (c *Column) Announce() { c.section.Soon(0, c.section.Len()) }

// shapeHeader is the factor of the header's bytes in a shape. It is greater than any number of low
// bits.
const shapeHeader = wordBits

// Corruptf returns an error for a list with impossible values.
func (c *Column) Corruptf(format string, args ...any) error {
	return c.section.Corruptf(0, format, args...)
}

// open reads all of the list for the first time.
func (c *Column) open() (List, error) {
	data, err := c.section.All()
	if err != nil {
		return List{}, err
	}
	list, used, err := Open(data)
	switch {
	case err != nil:
		return List{}, c.Corruptf("%v", err)
	case used != len(data):
		return List{}, c.section.Corruptf(int64(used), "%d bytes follow the list", len(data)-used)
	case list.n != int(c.n) || list.universe != c.universe:
		return List{}, c.Corruptf("a list of %d values below %d, not of %d below %d", list.n, list.universe, c.n, c.universe)
	}
	c.shape.Store(uint32(list.low)*shapeHeader + uint32(list.lowBits))
	return list, nil
}
