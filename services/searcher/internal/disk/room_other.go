//go:build !linux

package disk

import (
	"errors"
	"os"
)

func room(string) (int64, error)         { return 0, errors.ErrUnsupported }
func allocate(*os.File, int64) error     { return errors.ErrUnsupported }
func punch(_ *os.File, _, _ int64) error { return errors.ErrUnsupported }
func taken(info os.FileInfo) int64       { return Rounded(info.Size()) }
