package format

import (
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
)

// File is an open shard. All methods except Close are safe for concurrent use.
// Bytes returned by its sections are part of the mapping: callers must not
// change them, nor use them after Close.
//
// A searcher keeps thousands of Files open, so a File stores only what every
// read needs and reads the rest from the mapping.
type File struct {
	name     string
	data     []byte
	versions Versions
	mapped   bool
	// coldUntil is the last step in which reads of a mapped shard are announced: the largest number if
	// nothing was read yet, 0 if they are not.
	coldUntil atomic.Uint32
	// fill loads missing bytes; nil if there are none. soon may be nil.
	fill Fill
	soon Soon
	// read reads the bytes before inPlace, which are not in data; nil if there are none.
	read    Read
	inPlace int64
	recent  [recentSpans]atomic.Pointer[span]

	// tags of the sections, and where each starts. One more start is the end of
	// the last section and of the body. They are copies, so that reading them
	// never faults.
	tags   []Tag
	starts []int64
	// verified has a bit for each checksum block that was found to be sound.
	verified []atomic.Uint32
}

// OpenFile maps a shard. It reads the end of the file, the checksums and the
// header. The errors are those of the system, *CorruptError, and ErrVersion.
func OpenFile(path string) (*File, error) {
	data, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	f := &File{name: path, data: data, mapped: data != nil}
	f.advise(0, int64(len(data)), adviceRandom) // as a whole: each part of it could take one of the mappings that a process may have
	f.coldUntil.Store(math.MaxUint32)
	err = f.Guard(f.openWhole)
	if err != nil {
		_ = f.Close() // the caller gets only err
		return nil, err
	}
	return f, nil
}

// NewFile opens a shard that is in memory. The caller must not change data.
func NewFile(name string, data []byte) (*File, error) {
	f := &File{name: name, data: data}
	if err := f.openWhole(); err != nil {
		return nil, err
	}
	return f, nil
}

// mapFile maps the whole file; nil if it is empty, because an empty file cannot
// be mapped.
func mapFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return nil, fmt.Errorf("open shard: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("size of shard: %w", err)
	}
	size := info.Size()
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open shard %s: not a regular file", path)
	case size == 0:
		return nil, nil
	case size != int64(int(size)):
		return nil, fmt.Errorf("open shard %s: %d bytes are too many to map", path, size)
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map shard %s: %w", path, err)
	}
	return data, nil
}

// openWhole opens a shard whose header is in place.
func (f *File) openWhole() error {
	if err := f.open(); err != nil {
		return err
	}
	return f.checkHeader(f.data[:HeaderSize])
}

// open reads the end of the file and the checksums.
func (f *File) open() error {
	size := len(f.data)
	if size < HeaderSize+FooterSize {
		return tooShort(f.name, int64(size))
	}
	ft, err := parseFooter(f.name, int64(size), f.data[size-FooterSize:])
	if err != nil {
		return err
	}
	f.versions = ft.versions
	f.readSoon(ft.bodyLength, int64(size)-ft.bodyLength)
	toc := f.data[ft.tocOffset:][:ft.tocLength]
	if err := checkTOC(f.name, &ft, toc); err != nil {
		return err
	}
	sums := f.data[ft.bodyLength:ft.tocOffset]
	if crc32.Checksum(sums, castagnoli) != ft.checksumsCRC {
		return corruptf(f.name, partChecksums, ft.bodyLength, "checksum of the checksums does not match")
	}
	f.keep(toc, ft.bodyLength)
	f.verified = make([]atomic.Uint32, (f.blocks()+31)/32)
	return nil
}

// keep stores which sections there are.
func (f *File) keep(toc []byte, bodyLength int64) {
	n := len(toc) / EntrySize
	f.tags, f.starts = make([]Tag, 0, n), make([]int64, 0, n+1)
	for e := range slices.Chunk(toc, EntrySize) {
		s := parseEntry(e)
		f.tags, f.starts = append(f.tags, s.Tag), append(f.starts, s.Offset)
	}
	f.starts = append(f.starts, bodyLength)
}

// bodyLength returns how much of the file the checksums cover, which is where
// they start.
func (f *File) bodyLength() int64 { return f.starts[len(f.tags)] }

// blocks returns the number of checksums.
func (f *File) blocks() int64 { return (f.bodyLength() + ChecksumBlock - 1) >> checksumShift }

func (f *File) checkHeader(h []byte) error {
	v := Versions{Writer: le.Uint32(h[8:]), MinReader: le.Uint32(h[12:])}
	if string(h[:8]) != HeaderMagic || v != f.versions {
		return corruptf(f.name, partHeader, 0, "header is not that of the footer's shard")
	}
	return nil
}

// Close unmaps the shard. The caller must make sure that nothing reads it any
// more: reading bytes of a closed shard is a fault. A second call does nothing.
func (f *File) Close() error {
	data := f.data
	f.data = nil
	if !f.mapped {
		return nil
	}
	f.mapped = false
	if err := syscall.Munmap(data); err != nil {
		return fmt.Errorf("unmap shard %s: %w", f.name, err)
	}
	return nil
}

// Name returns the path under which the shard was opened.
func (f *File) Name() string { return f.name }

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return int64(len(f.data)) }

// Versions returns the versions of the shard.
func (f *File) Versions() Versions { return f.versions }

// Sections returns the table of contents in the order of the file, including
// sections with unknown tags. It reads the mapping: see Guard.
func (f *File) Sections() []SectionInfo {
	toc := f.data[f.bodyLength()+f.blocks()*ChecksumSize:]
	infos := make([]SectionInfo, len(f.tags))
	for i := range infos {
		infos[i] = parseEntry(toc[i*EntrySize:])
	}
	return infos
}

// tail returns where the tail of the shard starts.
func (f *File) tail() int64 {
	i := len(f.tags)
	for i > 0 && f.tags[i-1].inTail() {
		i--
	}
	return f.starts[i]
}

// Section finds a section.
func (f *File) Section(tag Tag) (Section, bool) {
	i := slices.Index(f.tags, tag)
	if i < 0 {
		return Section{}, false
	}
	return Section{file: f, number: uint32(i)}, true
}

// Decode decodes a whole small section that a shard must have.
func (f *File) Decode(tag Tag) (Decoder, error) {
	s, err := f.Need(tag)
	if err != nil {
		return Decoder{}, err
	}
	return s.Decoder()
}

// Corruptf returns an error for documents that contradict each other.
func (f *File) Corruptf(reason string, args ...any) error {
	return corruptf(f.name, "documents", -1, reason, args...)
}

// Need finds a section that a shard must have. Without it the shard is corrupt.
func (f *File) Need(tag Tag) (Section, error) {
	s, ok := f.Section(tag)
	if !ok {
		return Section{}, corruptf(f.name, tag.String(), -1, "section is missing")
	}
	return s, nil
}
