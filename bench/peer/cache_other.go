//go:build !linux

package peer

import "errors"

// DropCache is not known on this system.
func DropCache(string) error { return errors.New("dropping the page cache: only known on Linux") }

// ReadAhead is not known on this system.
func ReadAhead(string) int64 { return 0 }
