package inorder

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// DefaultMemory is the default bound on the bytes that a Buffer keeps in memory.
	DefaultMemory = 32 << 20

	chunkSize = 256 << 10
)

// BufferConfig configures a Buffer. The zero value has the defaults.
type BufferConfig struct {
	// Dir is the folder for the temporary file. Default: os.TempDir.
	Dir string
	// Memory bounds the bytes kept in memory. Default: DefaultMemory.
	Memory int64
}

// Buffer keeps bytes in the order in which they are written. The caller must call Close, also after
// errors. It is not safe for concurrent use.
type Buffer struct {
	cfg    BufferConfig
	chunks [][]byte // all but the last one are full
	size   int64
	file   *os.File      // nil while all is in memory
	writer *bufio.Writer // of the file
}

// NewBuffer returns an empty Buffer.
func NewBuffer(cfg BufferConfig) *Buffer {
	if cfg.Memory <= 0 {
		cfg.Memory = DefaultMemory
	}
	return &Buffer{cfg: cfg}
}

// Write implements io.Writer. The errors are those of the file.
func (b *Buffer) Write(p []byte) (int, error) {
	if b.file == nil && b.size+int64(len(p)) > b.cfg.Memory {
		if err := b.spill(); err != nil {
			return 0, err
		}
	}
	if b.file != nil {
		n, err := b.writer.Write(p)
		b.size += int64(n)
		if err != nil {
			return n, fmt.Errorf("write to a temporary file: %w", err)
		}
		return n, nil
	}
	b.size += int64(len(p))
	for left := p; len(left) > 0; {
		last := len(b.chunks) - 1
		if last < 0 || len(b.chunks[last]) == chunkSize {
			b.chunks = append(b.chunks, nil)
			last++
			if last > 0 { // the first chunk grows as needed
				b.chunks[last] = make([]byte, 0, chunkSize)
			}
		}
		n := min(len(left), chunkSize-len(b.chunks[last]))
		b.chunks[last] = append(b.chunks[last], left[:n]...)
		left = left[n:]
	}
	return len(p), nil
}

// spill moves everything to a file and removes the file's name, so that nothing of it stays, even
// if the process is killed.
func (b *Buffer) spill() (err error) {
	if b.file, err = os.CreateTemp(b.cfg.Dir, "spill-"); err != nil {
		return fmt.Errorf("make a temporary file: %w", err)
	}
	if err := os.Remove(b.file.Name()); err != nil {
		return fmt.Errorf("unlink a temporary file: %w", err)
	}
	b.writer = bufio.NewWriterSize(b.file, chunkSize)
	for _, chunk := range b.chunks {
		if _, err := b.writer.Write(chunk); err != nil {
			return fmt.Errorf("write to a temporary file: %w", err)
		}
	}
	b.chunks = nil
	return nil
}

// WriteTo implements io.WriterTo: it writes all bytes to w and keeps them.
func (b *Buffer) WriteTo(w io.Writer) (written int64, err error) {
	for _, chunk := range b.chunks {
		n, err := w.Write(chunk)
		if written += int64(n); err != nil {
			return written, err //nolint:wrapcheck // it is the caller's own writer
		}
	}
	if b.file == nil {
		return written, nil
	}
	if err := b.writer.Flush(); err != nil {
		return 0, fmt.Errorf("write to a temporary file: %w", err)
	}
	if written, err = io.Copy(w, io.NewSectionReader(b.file, 0, b.size)); err != nil {
		return written, fmt.Errorf("read a temporary file: %w", err)
	}
	return written, nil
}

// Close drops all bytes and frees the file's space. A second call does nothing.
func (b *Buffer) Close() error {
	file := b.file
	*b = Buffer{cfg: b.cfg}
	if file == nil {
		return nil
	}
	if err := file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close a temporary file: %w", err)
	}
	return nil
}
