//go:build !linux

package peer

import "errors"

// DropCache is not supported on this system.
func DropCache(string) error { return errors.New("dropping the page cache: supported only on Linux") }

// ReadAhead is not supported on this system.
func ReadAhead(string) int64 { return 0 }
