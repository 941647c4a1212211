package format

import (
	"math"
	"os"
	"time"
)

// Searches read scattered parts of a shard, a few KiB at a time. By default the kernel reads ahead
// around each missing page: 128 KiB or, on some disks, 8 MiB. So a mapping is marked for random
// access, and reads of a checksum block or more are announced to the kernel beforehand.
//
// Working out what to announce takes a search up to three quarters more time, or several times as long on a busy machine, and gains
// nothing if all of it is in memory. So searches announce only while a mapped shard is cold: nothing of it was read yet, or a block was
// not in memory when it was read for the first time.

// readSoon announces that bytes of a mapped shard will be read, so that the kernel loads them from
// the disk.
func (f *File) readSoon(off, n int64) {
	for end := off + n; off < end; off += adviceBytes {
		f.advise(off, min(adviceBytes, end-off), adviceWillNeed)
	}
}

// adviceBytes is how much one announcement to the kernel may have: it ignores what exceeds the
// read-ahead of the disk (force_page_cache_ra in Linux's mm/readahead.c), which by default is 128 KiB.
const adviceBytes = 128 << 10

// advise affects only speed, so errors do not matter.
func (f *File) advise(off, n int64, advice int) {
	if !f.mapped || n <= 0 {
		return
	}
	from := off &^ int64(os.Getpagesize()-1)
	madvise(f.data[from:off+n], advice)
}

// coldFor is how long, up to twice, a mapped shard counts as cold after a block of it came from the
// disk. Announced blocks are in memory when they are read, so this is also how often a search may wait for one that was not
// announced.
const coldFor = 100 * time.Millisecond

// clock is where steps are counted from.
var clock = time.Now()

// step is the time in units of coldFor.
func step() uint32 { return uint32(time.Since(clock) / coldFor) }

// announces reports whether announcements have any effect now.
func (f *File) announces() bool {
	if !f.mapped {
		return f.soon != nil
	}
	until := f.coldUntil.Load()
	if until == 0 || step() <= until {
		return until != 0
	}
	f.coldUntil.CompareAndSwap(until, 0) // a warm shard need not read the clock
	return false
}

// readFirst records whether blocks that are read for the first time are in memory.
func (f *File) readFirst(from, to int64) {
	switch {
	case !f.mapped:
	case !inMemory(f.data[from&^int64(os.Getpagesize()-1) : to]):
		f.coldUntil.Store(step() + 1)
	default:
		f.coldUntil.CompareAndSwap(math.MaxUint32, 0) // no longer unknown
	}
}
