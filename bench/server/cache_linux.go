package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// DropCache has the system forget the pages of all files below a folder, so that
// they are read from the disk again. It leaves pages that a process has mapped, and
// the files of others.
func DropCache(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a server that runs removes what it no longer needs
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return dropFile(path)
	})
}

func dropFile(path string) (err error) {
	file, err := os.Open(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("dropping the cache: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// What was not written yet cannot be dropped.
	if err := file.Sync(); err != nil {
		return fmt.Errorf("writing %s to the disk: %w", path, err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("dropping the cache of %s: %w", path, err)
	}
	return nil
}
