package peer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// DropCache makes the system drop the cached pages of all files below a folder, so that they are
// read from the disk again. It does not drop pages that a process has mapped, or files of other
// users.
func DropCache(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a running server may remove files
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
	// Pages that are not written yet cannot be dropped.
	if err := file.Sync(); err != nil {
		return fmt.Errorf("writing %s to the disk: %w", path, err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("dropping the cache of %s: %w", path, err)
	}
	return nil
}

// ReadAhead returns how many bytes the disk of a folder reads when one page is requested; 0 if
// unknown.
func ReadAhead(dir string) int64 {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return 0
	}
	device := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))
	for _, queue := range []string{"/queue", "/../queue"} { // of a disk, or of a partition
		if text, err := os.ReadFile(device + queue + "/read_ahead_kb"); err == nil {
			kib, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
