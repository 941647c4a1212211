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
// Nothing says cheaply which pages of a mapping are in memory. Working out what to announce takes a
// search up to three quarters more time if all of it is there. So searches announce only while a
// mapped shard is cold: nothing of it was read yet, or a block that was read for the first time took as
// long as only a disk takes.

// readAtRandom marks the whole mapping. If parts were marked, each could take one of the mappings
// that a process may have.
func (f *File) readAtRandom() { f.advise(0, int64(len(f.data)), adviceRandom) }

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

const (
	// diskTime is the least time of a checksum block that comes from a disk. In memory it takes a few
	// microseconds.
	diskTime = 50 * time.Microsecond
	// coldFor is how long, up to twice, a mapped shard counts as cold after a block of it came from the
	// disk. Announced blocks come fast, so this is also how often a search may wait for one that was not
	// announced.
	coldFor = 100 * time.Millisecond
)

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

// readFirst records that blocks were read for the first time, in which time.
func (f *File) readFirst(blocks int64, took time.Duration) {
	switch {
	case !f.mapped:
	case took >= diskTime*time.Duration(blocks):
		f.coldUntil.Store(step() + 1)
	default:
		f.coldUntil.CompareAndSwap(math.MaxUint32, 0) // no longer unknown
	}
}
