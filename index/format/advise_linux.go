package format

import (
	"os"
	"syscall"
	"unsafe"
)

const (
	adviceRandom   = syscall.MADV_RANDOM
	adviceWillNeed = syscall.MADV_WILLNEED
)

func madvise(data []byte, advice int) { _ = syscall.Madvise(data, advice) }

// inMemory reports whether all pages of a part of a mapping, which begins with a page, are in memory. If that cannot be known, because the
// file belongs to somebody else (mincore(2)), it reports that they are.
func inMemory(mapping []byte) bool {
	page := os.Getpagesize()
	var there [64]byte
	for len(mapping) > 0 {
		some := mapping[:min(len(mapping), len(there)*page)]
		_, _, err := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&some[0])), uintptr(len(some)), uintptr(unsafe.Pointer(&there[0]))) //nolint:gosec // both slices are as long as said
		if err != 0 {
			return true
		}
		for _, page := range there[:(len(some)+page-1)/page] {
			if page&1 == 0 {
				return false
			}
		}
		mapping = mapping[len(some):]
	}
	return true
}
