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
const blockSize = 64 << 10

// Prefix begins the names of this package's files. A file with such a name that exists
// before a cache starts was left by a process that died, and can be removed.
const Prefix = ".blocks-"

// object is a shard of the bucket, and the sparse file that holds its downloaded blocks,
// mapped as a whole. Slots, refs and stuck are guarded by the cache's mutex.
type object struct {
	Object
	path  string
	data  []byte
	grain int64 // bytes of a block
	slots []slot
	// tail is the first block of the shard's tail, which every search reads; the last block until the table of contents was read.
	tail uint32
	// refs counts the open shard and its flights. The last one to leave removes the file.
	refs int
	// stuck bytes could not be given back to the file system.
	stuck int64
}

// slot is the place of a block.
type slot struct {
	block *block
	ghost ghost
}

// overhead is the disk space that an object's file takes besides its blocks: file systems need
// extents for a file with many holes.
func overhead(size, grain int64) int64 {
	if blocks := size / grain; blocks >= 4 {
		return disk.Page * (1 + blocks/256)
	}
	return 0
}

// newObject makes the sparse file.
func newObject(dir string, grain int64, o Object) (*object, error) {
	f, err := os.CreateTemp(dir, Prefix+"*")
	if err != nil {
		return nil, fmt.Errorf("make a sparse file: %w", err)
	}
	defer f.Close()
	obj := &object{Object: o, path: f.Name(), grain: grain, slots: make([]slot, (o.Size+grain-1)/grain), refs: 1}
	obj.tail = uint32(max(len(obj.slots), 1) - 1)
	if err = f.Truncate(o.Size); err == nil && o.Size > 0 {
		obj.data, err = syscall.Mmap(int(f.Fd()), 0, int(o.Size), syscall.PROT_READ, syscall.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map a sparse file of %d bytes: %w", o.Size, err), os.Remove(obj.path))
	}
	return obj, nil
}

// span is where the blocks from first to last lie, in bytes.
func (o *object) span(first, last uint32) (off, n int64) {
	off = int64(first) * o.grain
	return off, min(int64(last+1)*o.grain, o.Size) - off
}

// everRead reports whether every search reads a block: the first one, which has the header, and those of the tail.
func (o *object) everRead(number uint32) bool { return number == 0 || number >= o.tail }

// missing returns the last block of the run of missing ones from first on, at most last. Callers hold
// the cache's mutex.
func (o *object) missing(first, last uint32) uint32 {
	for at := first + 1; at <= last; at++ {
		if o.slots[at].block != nil {
			return at - 1
		}
	}
	return last
}

// remove unmaps and removes the file.
func (o *object) remove() error {
	var unmap error
	if o.data != nil {
		unmap = syscall.Munmap(o.data)
	}
	if err := errors.Join(unmap, os.Remove(o.path)); err != nil {
		return fmt.Errorf("remove a sparse file: %w", err)
	}
	return nil
}
