package format

import (
	"os"
	"syscall"
	"time"
)

// Searches read scattered parts of a shard, a few KiB at a time. By default the kernel reads ahead
// around each missing page: 128 KiB or, on some disks, 8 MiB. So a mapping is marked for random
// access, and reads of a checksum block or more are announced to the kernel in one call.
//
// Nothing says cheaply which pages of a mapping are in memory. Working out what to announce takes a
// search up to three quarters more time if all of it is there. So searches announce only until
// a mapped shard has been read for a while without a block that was never read before.

// readAtRandom marks the whole mapping. If parts were marked, each could take one of the mappings
// that a process may have.
func (f *File) readAtRandom() { f.advise(0, int64(len(f.data)), syscall.MADV_RANDOM) }

// readSoon announces that bytes of a mapped shard will be read, so that the kernel loads them from
// the disk.
func (f *File) readSoon(off, n int64) {
	for end := off + n; off < end; off += mostAhead {
		f.advise(off, min(mostAhead, end-off), syscall.MADV_WILLNEED)
	}
}

// mostAhead is how much one announcement to the kernel may have: it ignores what exceeds the
// read-ahead of the disk (force_page_cache_ra in Linux's mm/readahead.c), which by default is 128 KiB.
const mostAhead = 128 << 10

// advise affects only speed, so it ignores errors.
func (f *File) advise(off, n int64, advice int) {
	if !f.mapped || n <= 0 {
		return
	}
	from := off &^ int64(os.Getpagesize()-1)
	_ = syscall.Madvise(f.data[from:off+n], advice)
}

// coldFor is how long a mapped shard counts as cold after a block of it was read for the first time.
const coldFor = 100 * time.Millisecond

// clock is where the times of coldUntil are counted from.
var clock = time.Now()

// announces reports whether announcements have any effect now.
func (f *File) announces() bool {
	if f.mapped {
		return int64(time.Since(clock)) <= f.coldUntil.Load()
	}
	return f.soon != nil
}

// readFirst records that a block is read for the first time.
func (f *File) readFirst() {
	if f.mapped {
		f.coldUntil.Store(int64(time.Since(clock) + coldFor))
	}
}
