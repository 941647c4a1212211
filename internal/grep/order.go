package grep

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Order is an order of files. The zero Order leaves them as they are found.
type Order struct {
	By      Key
	Reverse bool
}

// Key is what files are ordered by.
type Key uint8

// Keys of an order. Files with the same time stand in the order of their paths.
const (
	AsFound Key = iota
	Path
	Modified // the time of the last change of the content
	Accessed // the time of the last reading, where the file system keeps it
)

// sort sorts files. One that cannot be looked at is the oldest, and reading it says why.
func (o Order) sort(files []file) {
	if o.By == AsFound {
		return
	}
	times := map[string]int64{}
	if o.By != Path {
		for _, f := range files {
			var s unix.Stat_t
			_ = unix.Stat(f.path, &s)
			if times[f.path] = s.Mtim.Nano(); o.By == Accessed {
				times[f.path] = s.Atim.Nano()
			}
		}
	}
	slices.SortStableFunc(files, func(a, b file) int {
		if o.Reverse {
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(times[a.path], times[b.path]), strings.Compare(a.path, b.path))
	})
}
