package eliasfano

import (
	"sync"

	"github.com/trawl-search/trawl/index/format"
)

// Column is a section of a shard that is one list. It is read, and its
// checksums checked, when it is first used. After Init it is safe for
// concurrent use. It must not be copied.
type Column struct {
	section format.Section
	once    sync.Once
	list    List // before it is opened, without data: the length and universe that are wanted
	err     error
}

// Init names the section and the number of values and the universe that the
// list must have; a list of others is corrupt.
func (c *Column) Init(section format.Section, n int, universe uint64) {
	c.section = section
	c.list.n, c.list.universe = n, universe
}

// List returns the list, good until the shard is closed. The error is a
// *format.CorruptError, and the same for every call.
func (c *Column) List() (*List, error) {
	c.once.Do(c.open)
	if c.err != nil {
		return nil, c.err
	}
	return &c.list, nil
}

// Corruptf says that the section is corrupt: its list holds what cannot be.
func (c *Column) Corruptf(format string, args ...any) error {
	return c.section.Corruptf(0, format, args...)
}

func (c *Column) open() {
	// Stands if a fault of the mapping unwinds the stack from here.
	c.err = c.section.Corruptf(0, "the list could not be read")
	data, err := c.section.All()
	if err != nil {
		c.err = err
		return
	}
	list, used, err := Open(data)
	switch {
	case err != nil:
		c.err = c.section.Corruptf(0, "%v", err)
	case used != len(data):
		c.err = c.section.Corruptf(int64(used), "%d bytes follow the list", len(data)-used)
	case list.n != c.list.n || list.universe != c.list.universe:
		c.err = c.section.Corruptf(0, "a list of %d values below %d, not of %d below %d", list.n, list.universe, c.list.n, c.list.universe)
	default:
		c.list, c.err = list, nil
	}
}
