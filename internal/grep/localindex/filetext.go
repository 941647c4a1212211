package localindex

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/trawl-search/trawl/index/build"
)

// MaxSize bounds the size of a searched file, in bytes.
const MaxSize = 512 << 20

// Text is the part of a file that ripgrep searches. It has no byte order mark, and UTF-16 is converted to UTF-8. Of
// a binary file it has only the part that ripgrep reads before it sees the first NUL byte.
type Text struct {
	Bytes []byte
	// NUL is the offset of the first NUL byte, -1 if there is none. Bytes end before it, and their capacity
	// does not.
	NUL int
}

// ReadFile reads the file at path into buf, which it grows, and returns the state that the file had before. It makes four
// system calls, fewer than os.File does.
func ReadFile(path string, buf []byte) (content []byte, state unix.Stat_t, err error) {
	fd, err := again(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return buf, state, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	if err := unix.Fstat(fd, &state); err != nil {
		return buf, state, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if state.Size > MaxSize {
		return buf, state, fmt.Errorf("%s has %d bytes; files of up to %d are searched", path, state.Size, MaxSize)
	}
	buf = slices.Grow(buf[:0], int(state.Size)+1)
	for {
		n, err := again(func() (int, error) { return unix.Read(fd, buf[len(buf):cap(buf)]) })
		if err != nil {
			return buf, state, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		buf = buf[:len(buf)+n]
		switch {
		case n == 0, state.Size > 0 && len(buf) == int(state.Size):
			return buf, state, nil
		case len(buf) > MaxSize:
			return buf, state, fmt.Errorf("%s grows beyond the %d bytes up to which files are searched", path, MaxSize)
		case len(buf) == cap(buf):
			buf = slices.Grow(buf, len(buf))
		}
	}
}

// again repeats a call that a signal ended, as some file systems let it.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR { //nolint:errorlint // the system call returns it unwrapped
			return n, err
		}
	}
}

// TextOf returns the text of a file's content. The text shares memory with the content unless that is UTF-16.
func TextOf(content []byte) Text {
	content = build.Text(content)
	nul := bytes.IndexByte(content, 0)
	if nul < 0 {
		return Text{Bytes: content, NUL: -1}
	}
	return Text{Bytes: content[:searchedBytes(content, nul)], NUL: nul}
}

// bufferSize is the number of bytes that ripgrep reads at once. It searches whole lines of what it has read,
// unless the last bytes have a NUL.
const bufferSize = 64 << 10

// firstRead is the number of bytes that it reads first, to look for a byte order mark.
const firstRead = 3

// searchedBytes returns how many bytes ripgrep searches of a content whose first NUL is at nul.
func searchedBytes(content []byte, nul int) int {
	begin, capacity := 0, bufferSize // where the buffer begins in content
	read := min(firstRead, len(content))
	for end := 0; ; read = min(begin+capacity, len(content)) {
		if nul < read {
			return begin
		}
		if n := bytes.LastIndexByte(content[end:read], '\n'); n >= 0 {
			begin = end + n + 1
		}
		if end = read; end-begin == capacity {
			capacity *= 3 // ripgrep's buffer grows for a long line, and stays large
		}
	}
}
