package ranged

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// blockSize is the unit in which objects are downloaded and evicted, in bytes: a multiple
// of disk.Page.
const blockSize = 16 << 10

// Prefix begins the names of this package's files. A file with such a name that exists
// before a cache starts was left by a process that died, and can be removed.
const Prefix = ".blocks-"

// object is a shard of the bucket. Its fields below grain are guarded by the cache's mutex; file and data do not change
// once they are set.
type object struct {
	Object
	grain int64 // bytes of a block

	slots []slot
	// flights are under way, by block.
	flights map[uint32]*flight
	// tail is the first block of the shard's tail, 0 until it is known. Only blocks before it are kept.
	tail uint32
	// file holds the blocks that were downloaded, nil before the first one, and data maps all of it. placed is set once the tail is there.
	file   *os.File
	data   []byte
	placed bool
	// placing is held by the search that puts the tail there.
	placing chan struct{}
	// refs counts the open shard and its flights. The last one to leave removes the file.
	refs int
	// stuck bytes could not be given back to the file system.
	stuck int64
	// complained is set once the log has a failure of the disk.
	complained bool
}

// slot is the place of a block, which is nil unless it is on disk.
type slot struct {
	block *block
	ghost ghost
}

func newObject(grain int64, o Object) *object {
	return &object{
		Object: o, grain: grain, slots: make([]slot, (o.Size+grain-1)/grain), flights: make(map[uint32]*flight),
		placing: make(chan struct{}, 1), refs: 1,
	}
}

// overhead is the disk space that an object's file takes besides its blocks: file systems need
// extents for a file with many holes.
func overhead(size, grain int64) int64 {
	if blocks := size / grain; blocks >= 4 {
		return disk.Page * (1 + blocks/256)
	}
	return 0
}

// prepare makes the object's sparse file, unless it is there, and reports whether there is one. Callers hold mu.
func (c *Cache) prepare(o *object) bool {
	if o.file != nil {
		return true
	}
	taken := overhead(o.Size, o.grain)
	if !c.reserve(taken) {
		return false
	}
	if err := o.create(c.dir); err != nil {
		c.complain(o, err)
		c.budget.Give(taken)
		return false
	}
	return true
}

// create makes the sparse file.
func (o *object) create(dir string) error {
	f, err := disk.Create(dir, Prefix+"*")
	if err != nil {
		return err
	}
	var data []byte
	if err = f.Truncate(o.Size); err == nil {
		data, err = syscall.Mmap(int(f.Fd()), 0, int(o.Size), syscall.PROT_READ, syscall.MAP_SHARED)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("map a sparse file of %d bytes: %w", o.Size, err), f.Close(), os.Remove(f.Name()))
	}
	o.file, o.data = f, data
	return nil
}

// span is where the blocks from first to last lie, in bytes.
func (o *object) span(first, last uint32) (off, n int64) {
	off = int64(first) * o.grain
	return off, min(int64(last+1)*o.grain, o.Size) - off
}

// tailSize is the disk space of the tail.
func (o *object) tailSize() int64 { return disk.Rounded(o.Size - int64(o.tail)*o.grain) }

// remove unmaps and removes the file, which may be gone.
func (o *object) remove() error {
	gone := os.Remove(o.file.Name())
	if errors.Is(gone, os.ErrNotExist) {
		gone = nil
	}
	if err := errors.Join(gone, syscall.Munmap(o.data), o.file.Close()); err != nil {
		return fmt.Errorf("remove a sparse file: %w", err)
	}
	return nil
}
