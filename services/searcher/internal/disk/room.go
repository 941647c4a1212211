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

// Punch frees the disk space of the n bytes at off, which read as zeros from then on.
// Both numbers must be multiples of Page, except at the end of the file.
func Punch(path string, off, n int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open file to free a part of it: %w", err)
	}
	defer f.Close()
	if err := punch(f, off, n); err != nil {
		return fmt.Errorf("free %d bytes of %s: %w", n, path, err)
	}
	return nil
}

// Holes checks that the file system of a folder can punch holes into files.
func Holes(dir string) error {
	f, err := os.CreateTemp(dir, ".partial-*")
	if err != nil {
		return fmt.Errorf("try a file with holes: %w", err)
	}
	name := f.Name()
	_, err = f.Write(make([]byte, Page))
	return errors.Join(err, f.Close(), Punch(name, 0, Page), os.Remove(name))
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
