// Package disk keeps a searcher's use of its disk within a budget. It also wraps what
// that needs of a file system: its free space, holes in files, and preallocation.
package disk

import "sync/atomic"

// Page is the unit in which file systems allocate space, in bytes.
const Page = 4096

// Rounded returns the disk space that a file of n bytes, or a page-aligned part of one,
// takes.
func Rounded(n int64) int64 { return (n + Page - 1) / Page * Page }

// Budget accounts for bytes on disk: complete files, files that are being written, and
// parts of files. Bytes are taken before they are written and given back after they are
// removed. So the disk never holds more than was taken, and no more than the limit is
// ever taken. It is safe for concurrent use.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget makes a budget of limit bytes; 0 means no limit.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Limit is the most that can be taken, in bytes, 0 for no limit.
func (b *Budget) Limit() int64 { return b.limit }

// Used is what is taken, in bytes.
func (b *Budget) Used() int64 { return b.used.Load() }

// Take takes n bytes, or nothing when fewer are left.
func (b *Budget) Take(n int64) bool {
	for {
		used := b.used.Load()
		if b.limit > 0 && n > b.limit-used {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// Give gives back n bytes that were taken.
func (b *Budget) Give(n int64) { b.used.Add(-n) }
