// Package disk keeps a searcher's use of its disk within a budget, and says of
// a file system what that takes: its room, holes in files, and room set aside.
package disk

import "sync/atomic"

// Page is the grain in which file systems give room, in bytes.
const Page = 4096

// Rounded is the room that a file, or a page-aligned part of one, of n bytes
// takes on disk.
func Rounded(n int64) int64 { return (n + Page - 1) / Page * Page }

// Budget is an account of bytes on disk: of files that are complete, of those
// that are being written, and of parts of files. Bytes are taken before they are
// written and given back after they are gone, so that what is on disk is never
// more than what is taken, nor that more than the limit. It is safe for
// concurrent use.
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
