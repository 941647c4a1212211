package disk

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func room(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}

func allocate(f *os.File, n int64) error { return fallocate(f, 0, 0, n) }

func punch(f *os.File, off, n int64) error {
	return fallocate(f, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

// fallocate retries when a signal, such as the Go scheduler's, interrupts the call.
func fallocate(f *os.File, mode uint32, off, n int64) error {
	for {
		if err := unix.Fallocate(int(f.Fd()), mode, off, n); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func taken(info os.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return Rounded(info.Size())
}
