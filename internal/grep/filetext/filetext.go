// Package filetext has what of a file ripgrep searches: no byte order mark, UTF-8 instead of UTF-16, and of a
// binary file only what is read before the first NUL byte is seen.
package filetext

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// MaxSize in bytes of a file that is searched.
const MaxSize = 512 << 20

// Text is what of a file is searched.
type Text struct {
	Bytes []byte
	// NUL is the offset of the first NUL byte, -1 if there is none. Bytes end before it.
	NUL int
}

// Read reads all of the file at path into buf, which grows, and returns the file's state before that. It takes four calls of the system, less
// than os.File does.
func Read(path string, buf []byte) (content []byte, state unix.Stat_t, err error) {
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
		if n, err := call(); err != unix.EINTR { //nolint:errorlint // it is the system's own
			return n, err
		}
	}
}

// Of returns the text of a file's content, of which it is a part unless that is UTF-16.
func Of(content []byte) Text {
	switch {
	case bytes.HasPrefix(content, []byte("\xef\xbb\xbf")):
		content = content[3:]
	case bytes.HasPrefix(content, []byte("\xff\xfe")):
		content = decode(content[2:], binary.LittleEndian)
	case bytes.HasPrefix(content, []byte("\xfe\xff")):
		content = decode(content[2:], binary.BigEndian)
	}
	nul := bytes.IndexByte(content, 0)
	if nul < 0 {
		return Text{Bytes: content, NUL: -1}
	}
	return Text{Bytes: content[:searched(content, nul)], NUL: nul}
}

// bufferSize is how much ripgrep reads at once. It searches whole lines of what it has read, unless the last
// bytes have a NUL.
const bufferSize = 64 << 10

// firstRead is how much it reads first, to see whether there is a byte order mark.
const firstRead = 3

// searched is how much is searched of content whose first NUL is at nul.
func searched(content []byte, nul int) int {
	begin, capacity := 0, bufferSize // of the buffer in content
	read := min(firstRead, len(content))
	for end := 0; ; read = min(begin+capacity, len(content)) {
		if nul < read {
			return begin
		}
		if n := bytes.LastIndexByte(content[end:read], '\n'); n >= 0 {
			begin = end + n + 1
		}
		if end = read; end-begin == capacity {
			capacity *= 3 // as its buffer grows for a long line; it stays so
		}
	}
}

// decode turns UTF-16 into UTF-8. What is no rune becomes U+FFFD.
func decode(content []byte, order binary.ByteOrder) []byte {
	text := make([]byte, 0, len(content))
	for len(content) >= 2 {
		r := rune(order.Uint16(content))
		content = content[2:]
		if utf16.IsSurrogate(r) {
			if len(content) < 2 {
				return utf8.AppendRune(text, utf8.RuneError) // for half a rune and half of another
			}
			r2 := rune(order.Uint16(content))
			if r = utf16.DecodeRune(r, r2); r != utf8.RuneError {
				content = content[2:]
			}
		}
		text = utf8.AppendRune(text, r)
	}
	if len(content) > 0 {
		text = utf8.AppendRune(text, utf8.RuneError)
	}
	return text
}
