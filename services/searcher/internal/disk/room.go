package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Room returns the bytes that this process may still write to the file system of a
// folder.
func Room(dir string) (int64, error) {
	n, err := room(dir)
	if err != nil {
		return 0, fmt.Errorf("room of the file system of %s: %w", dir, err)
	}
	return n, nil
}

// Allocate reserves n bytes on disk for an empty file, so that writing them cannot fail
// for lack of space. It does nothing if the file system does not support that.
func Allocate(f *os.File, n int64) error {
	err := allocate(f, n)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("set %d bytes of disk aside: %w", n, err)
	}
	return nil
}

// Create makes a file in a cache folder, as os.CreateTemp does. If somebody removed the folder, it makes that, too.
func Create(dir, pattern string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w", err)
	}
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, fmt.Errorf("make a file in the cache folder: %w", err)
	}
	return f, nil
}

// Punch frees the disk space of the n bytes at off, which read as zeros from then on.
// Both numbers must be multiples of Page, except at the end of the file.
func Punch(f *os.File, off, n int64) error {
	if err := punch(f, off, n); err != nil {
		return fmt.Errorf("free %d bytes of %s: %w", n, f.Name(), err)
	}
	return nil
}

// Holes checks that the file system of a folder can punch holes into files.
func Holes(dir string) error {
	f, err := Create(dir, ".partial-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, Page))
	return errors.Join(err, Punch(f, 0, Page), f.Close(), os.Remove(f.Name()))
}

// Taken returns the disk space of all files below a folder, in bytes. It does not count
// files that disappear meanwhile.
func Taken(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info os.FileInfo
			if info, err = d.Info(); err == nil {
				sum += taken(info)
			}
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("room that %s takes: %w", dir, err)
	}
	return sum, nil
}
