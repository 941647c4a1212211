package localindex

import (
	"time"

	"golang.org/x/sys/unix"
)

// stamp identifies a state of a file: every write changes the times of the file.
type stamp struct {
	size, modified, changed int64 // bytes; nanoseconds since 1970
	inode                   uint64
}

func stampOf(s *unix.Stat_t) stamp {
	return stamp{size: s.Size, modified: s.Mtim.Nano(), changed: s.Ctim.Nano(), inode: s.Ino}
}

// settling is how old the last change of a file must be for its stamp to be trusted: on file systems that
// count in seconds, a second change soon after the first may leave the times unchanged.
const settling = 2 * time.Second

// settled reports whether a change after now would change the stamp.
func (s stamp) settled(now time.Time) bool {
	return max(s.modified, s.changed) <= now.Add(-settling).UnixNano()
}

// statFile returns the stamp of the file at path, the zero stamp if there is none or it
// cannot be read.
func statFile(path string) stamp {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return stamp{}
	}
	return stampOf(&s)
}
