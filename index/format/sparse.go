package format

import "fmt"

// Fill makes n bytes at off of a sparse shard readable. If it returns nil, the bytes are in place;
// checksums still verify them. It must be safe for concurrent use, and may be called for the same
// bytes again. Its errors are wrapped and returned to the reader of the bytes.
type Fill func(off, n int64) error

// NewSparse opens a shard whose bytes are loaded when they are read. data has the length of the
// whole shard, and its bytes are meaningful only after fill has loaded them. Opening loads the end
// of the shard and its header. data belongs to the caller, also after Close. Errors are those of
// fill, *CorruptError, and ErrVersion.
func NewSparse(name string, data []byte, fill Fill) (*File, error) {
	f := &File{name: name, data: data, fill: fill}
	if err := f.Guard(f.openSparse); err != nil {
		return nil, err
	}
	return f, nil
}

// openSparse loads what open reads; a short end is loaded in one piece.
func (f *File) openSparse() error {
	size := int64(len(f.data))
	if size < HeaderSize+FooterSize {
		return tooShort(f.name, size)
	}
	tail := min(size, TailSize)
	if err := f.bring(size-tail, tail); err != nil {
		return err
	}
	ft, err := parseFooter(f.name, size, f.data[size-FooterSize:])
	if err != nil {
		return err
	}
	if err := f.bring(ft.bodyLength, size-ft.bodyLength); err != nil {
		return err
	}
	if err := f.bring(0, HeaderSize); err != nil {
		return err
	}
	return f.open()
}

// bring loads bytes that may be missing.
func (f *File) bring(off, n int64) error {
	if f.fill == nil {
		f.readSoon(off, n)
		return nil
	}
	if err := f.fill(off, n); err != nil {
		return fmt.Errorf("bring %d bytes at %d of shard %s: %w", n, off, f.name, err)
	}
	return nil
}
