package format

import "hash/crc32"

// Section is a view of one section of an open shard. It is a small value, safe
// for concurrent use, and valid until the file is closed. The zero value is an
// empty section.
type Section struct {
	file   *File
	number uint32 // in the table of contents
}

// place returns where the section is in the file.
func (s Section) place() (start, end int64) {
	if s.file == nil {
		return 0, 0
	}
	return s.file.starts[s.number], s.file.starts[s.number+1]
}

// Len returns the section's size in bytes.
func (s Section) Len() int64 {
	start, end := s.place()
	return end - start
}

// Tag returns the section's tag.
func (s Section) Tag() Tag {
	if s.file == nil {
		return 0
	}
	return s.file.tags[s.number]
}

// Bytes returns n bytes from off, both within the section, as a slice of the
// mapping: the caller must not change it, nor use it after the file is closed.
// The first read of each 16 KiB checks its checksum; later reads cost a few
// nanoseconds. It allocates only errors. Each is a *CorruptError or, for a
// sparse shard, an error of its Fill. For a remote shard, each read allocates
// the bytes and checks them, and errors may be those of its Read.
func (s Section) Bytes(off, n int64) ([]byte, error) {
	start, end := s.place()
	if off < 0 || n < 0 || off > end-start-n {
		return nil, s.outside(off, n)
	}
	if n == 0 {
		return nil, nil
	}
	from := start + off
	to := from + n
	if from < s.file.inPlace {
		return s.copied(from, to)
	}
	for block, last := from>>checksumShift, (to-1)>>checksumShift; block <= last; block++ {
		if !s.file.isVerified(block) {
			if err := s.verify(block, last); err != nil {
				return nil, err
			}
			break
		}
	}
	return s.file.data[from:to:to], nil
}

// All returns the whole section. It is meant for small ones.
func (s Section) All() ([]byte, error) { return s.Bytes(0, s.Len()) }

// Checked returns the whole section as All does, but without checking it: for
// callers that have called All before.
func (s Section) Checked() []byte {
	start, end := s.place()
	if start == end {
		return nil
	}
	return s.file.data[start:end:end]
}

// Decoder decodes the whole section. It is meant for small ones.
func (s Section) Decoder() (Decoder, error) { return s.DecoderAt(0, s.Len()) }

// DecoderAt decodes n bytes from off.
func (s Section) DecoderAt(off, n int64) (Decoder, error) {
	data, err := s.Bytes(off, n)
	if err != nil {
		return Decoder{}, err
	}
	start, _ := s.place()
	d := NewDecoder(s.fileName(), s.Tag(), data)
	d.base = start + off
	return d, nil
}

// Corruptf returns an error for a corrupt section; off is an offset within the
// section.
func (s Section) Corruptf(off int64, format string, args ...any) error {
	start, _ := s.place()
	return corruptf(s.fileName(), s.Tag().String(), start+off, format, args...)
}

func (s Section) fileName() string {
	if s.file == nil {
		return ""
	}
	return s.file.name
}

func (s Section) outside(off, n int64) error {
	return s.Corruptf(0, "%d bytes at %d are outside of a section of %d", n, off, s.Len())
}

// verify loads the blocks from first to last, checks their checksums, and
// records that they are sound.
func (s Section) verify(first, last int64) error {
	f := s.file
	from, to := first<<checksumShift, min((last+1)<<checksumShift, f.bodyLength())
	f.readFirst(from, to)
	if err := f.bring(from, to-from); err != nil {
		return err
	}
	for block := first; block <= last; block++ {
		if f.isVerified(block) {
			continue
		}
		if !f.sound(block) {
			return corruptf(f.name, s.Tag().String(), block<<checksumShift, "checksum of the %d bytes here does not match", ChecksumBlock)
		}
		f.verified[block>>5].Or(1 << (block & 31))
	}
	return nil
}

// isVerified reports whether a block was found to be sound.
func (f *File) isVerified(block int64) bool { return f.verified[block>>5].Load()>>(block&31)&1 != 0 }

// sound reports whether a block has the right checksum.
func (f *File) sound(block int64) bool {
	from := block << checksumShift
	to := min(from+ChecksumBlock, f.bodyLength())
	return crc32.Checksum(f.data[from:to], castagnoli) == f.checksum(block)
}

// checksum returns what the checksum of a block must be.
func (f *File) checksum(block int64) uint32 {
	return le.Uint32(f.data[f.bodyLength()+block*ChecksumSize:])
}
