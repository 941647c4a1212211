package format

import (
	"os"
	"syscall"
)

// Searches read scattered parts of a shard, a few KiB at a time. By default the kernel reads ahead
// around each missing page: 128 KiB or, on some disks, 8 MiB. So a mapping is marked for random
// access, and reads of a checksum block or more are announced to the kernel in one call.

// readAtRandom marks the whole mapping. If parts were marked, each could take one of the mappings
// that a process may have.
func (f *File) readAtRandom() { f.advise(0, int64(len(f.data)), syscall.MADV_RANDOM) }

// readSoon announces that bytes of a mapped shard will be read, so that the kernel loads them from
// the disk.
func (f *File) readSoon(off, n int64) { f.advise(off, n, syscall.MADV_WILLNEED) }

// advise affects only speed, so it ignores errors.
func (f *File) advise(off, n int64, advice int) {
	if !f.mapped || n <= 0 {
		return
	}
	from := off &^ int64(os.Getpagesize()-1)
	_ = syscall.Madvise(f.data[from:off+n], advice)
}
