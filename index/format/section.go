package format

import "hash/crc32"

// Section is a view of one section of an open shard: a small value, safe for
// concurrent use, good until the file is closed. The zero value is a section
// without bytes.
type Section struct {
	file *File
	off  int64
	size int64
	tag  Tag
}

// Len is the section's size in bytes.
func (s Section) Len() int64 { return s.size }

// Tag is the section's tag.
func (s Section) Tag() Tag { return s.tag }

// Bytes returns n bytes from off, both within the section, as a slice of the
// mapping: not to be changed, nor used after the file is closed. The first
// read of each 16 KiB checks its checksum; later ones cost a few nanoseconds.
// It allocates nothing but errors; each is a *CorruptError.
func (s Section) Bytes(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > s.size-n {
		return nil, s.outside(off, n)
	}
	if n == 0 {
		return nil, nil
	}
	from := s.off + off
	to := from + n
	for block := from >> checksumShift; block <= (to-1)>>checksumShift; block++ {
		if s.file.verified[block>>5].Load()>>(block&31)&1 == 0 {
			if err := s.verify(block); err != nil {
				return nil, err
			}
		}
	}
	return s.file.data[from:to:to], nil
}

// All returns the whole section; meant for small ones.
func (s Section) All() ([]byte, error) { return s.Bytes(0, s.size) }

// Decoder decodes the whole section; meant for small ones.
func (s Section) Decoder() (*Decoder, error) { return s.DecoderAt(0, s.size) }

// DecoderAt decodes n bytes from off.
func (s Section) DecoderAt(off, n int64) (*Decoder, error) {
	data, err := s.Bytes(off, n)
	if err != nil {
		return nil, err
	}
	d := NewDecoder(s.fileName(), s.tag.String(), data)
	d.base = s.off + off
	return d, nil
}

// Corruptf says that the section is corrupt at off, an offset within the
// section.
func (s Section) Corruptf(off int64, format string, args ...any) error {
	return corruptf(s.fileName(), s.tag.String(), s.off+off, format, args...)
}

func (s Section) fileName() string {
	if s.file == nil {
		return ""
	}
	return s.file.name
}

func (s Section) outside(off, n int64) error {
	return s.Corruptf(0, "%d bytes at %d are wanted of a section of %d", n, off, s.size)
}

// verify checks a block's checksum and remembers that it is sound.
func (s Section) verify(block int64) error {
	if !s.file.sound(block) {
		return corruptf(s.fileName(), s.tag.String(), block<<checksumShift, "checksum of the %d bytes here does not match", ChecksumBlock)
	}
	s.file.verified[block>>5].Or(1 << (block & 31))
	return nil
}

// sound computes a block's checksum.
func (f *File) sound(block int64) bool {
	from := block << checksumShift
	to := min(from+ChecksumBlock, int64(len(f.body)))
	return crc32.Checksum(f.body[from:to], castagnoli) == le.Uint32(f.sums[block*ChecksumSize:])
}
