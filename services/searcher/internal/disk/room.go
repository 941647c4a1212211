package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Room is how many bytes the file system of a folder has that this process may
// still write.
func Room(dir string) (int64, error) {
	n, err := room(dir)
	if err != nil {
		return 0, fmt.Errorf("room of the file system of %s: %w", dir, err)
	}
	return n, nil
}

// Allocate gives an empty file n bytes of room, so that writing them cannot
// fail for want of it. Where the file system cannot, it does nothing.
func Allocate(f *os.File, n int64) error {
	err := allocate(f, n)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("set %d bytes of disk aside: %w", n, err)
	}
	return nil
}

// Punch gives the room of n bytes at off back to the file system: they read as
// zeros then. Both are multiples of Page, but for the end of the file.
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

// Holes checks that holes can be punched into files of a folder; the error says why not.
func Holes(dir string) error {
	f, err := os.CreateTemp(dir, ".partial-*")
	if err != nil {
		return fmt.Errorf("try a file with holes: %w", err)
	}
	name := f.Name()
	_, err = f.Write(make([]byte, Page))
	return errors.Join(err, f.Close(), Punch(name, 0, Page), os.Remove(name))
}

// Taken is the room that the files in a folder and below it take, in bytes. What
// goes while it looks is not counted.
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
