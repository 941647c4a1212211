package format

import (
	"os"
	"syscall"
)

// Searches read a shard here and there, a few KiB at a time. Left to itself, the kernel reads
// up to its read-ahead around each page that is missing: 128 KiB or, on some disks, 8 MiB.
// So a mapping is advised to be read at random, and what is about to be read, in pieces of a
// checksum block or more, is asked for in one go.

// readAtRandom advises the whole mapping: parts of their own would each take one of the
// mappings that a process may have.
func (f *File) readAtRandom() { f.advise(0, int64(len(f.data)), syscall.MADV_RANDOM) }

// readSoon has bytes of a mapped shard read from the disk, if they are not in memory.
func (f *File) readSoon(off, n int64) { f.advise(off, n, syscall.MADV_WILLNEED) }

// advise is of no consequence but for speed, so that errors are none.
func (f *File) advise(off, n int64, advice int) {
	if !f.mapped || n <= 0 {
		return
	}
	from := off &^ int64(os.Getpagesize()-1)
	_ = syscall.Madvise(f.data[from:off+n], advice)
}
