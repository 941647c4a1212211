package format

import (
	"fmt"
	"slices"
)

// Fill makes n bytes at off of a sparse shard readable. If it returns nil, the bytes are in place;
// checksums still verify them. It must be safe for concurrent use, and may be called for the same
// bytes again. Its errors are wrapped and returned to the reader of the bytes.
type Fill func(off, n int64) error

// Read fills p with the bytes at off of a remote shard, all within it. Checksums still verify them. It must be safe for
// concurrent use. Its errors are wrapped and returned to the reader of the bytes.
type Read func(p []byte, off int64) error

// Soon begins to load n bytes at off that a Fill or a Read is about to be called for, and returns at once. It
// affects only speed, so it has no error. It must be safe for concurrent use.
type Soon func(off, n int64)

// NewSparse opens a shard whose bytes are loaded when they are read. data has the length of the
// whole shard, and its bytes are meaningful only after fill has loaded them. soon may be nil: then
// each read waits for its own bytes. Opening loads the end of the shard and its header. data belongs
// to the caller, also after Close. Errors are those of fill, *CorruptError, and ErrVersion.
func NewSparse(name string, data []byte, fill Fill, soon Soon) (*File, error) {
	f := &File{name: name, data: data, fill: fill, soon: soon}
	if err := f.Guard(f.openSparse); err != nil {
		return nil, err
	}
	return f, nil
}

// NewRemote opens a shard of which only the tail is in memory, see TailStart. data has the length of the whole shard; its tail
// must be in place, and the rest is never looked at. Each read of another section is a call of read and returns memory of its own, so a reader
// keeps of the shard only what it holds on to. soon may be nil. data belongs to the caller, also after Close. Verify and Recheck need a shard with all of its
// bytes. Errors are those of read, *CorruptError, and ErrVersion.
func NewRemote(name string, data []byte, read Read, soon Soon) (*File, error) {
	f := &File{name: name, data: data, read: read, soon: soon}
	if err := f.Guard(f.openRemote); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) openRemote() error {
	if err := f.open(); err != nil {
		return err
	}
	f.inPlace = f.tail()
	header := make([]byte, HeaderSize)
	if err := f.read(header, 0); err != nil {
		return fmt.Errorf("read the header of shard %s: %w", f.name, err)
	}
	return f.checkHeader(header)
}

// TailStart reads where the tail of a shard starts: the sections that say where in the others something is, and the frame after
// them. It returns the start of that block of ChecksumBlock bytes, which is verified as a whole. Errors are those of read, *CorruptError, and ErrVersion.
func TailStart(name string, size int64, read Read) (int64, error) {
	if size < HeaderSize+FooterSize {
		return 0, tooShort(name, size)
	}
	from := max(0, size-TailSize)
	end := make([]byte, size-from)
	if err := read(end, from); err != nil {
		return 0, fmt.Errorf("read the end of shard %s: %w", name, err)
	}
	ft, err := parseFooter(name, size, end[len(end)-FooterSize:])
	if err != nil {
		return 0, err
	}
	if ft.tocOffset < from {
		from = ft.tocOffset
		end = make([]byte, size-from)
		if err := read(end, from); err != nil {
			return 0, fmt.Errorf("read the table of contents of shard %s: %w", name, err)
		}
	}
	toc := end[ft.tocOffset-from:][:ft.tocLength]
	if err := checkTOC(name, &ft, toc); err != nil {
		return 0, err
	}
	f := File{name: name}
	f.keep(toc, ft.bodyLength)
	return f.tail() >> checksumShift << checksumShift, nil
}

// openSparse loads what open reads; a short end is loaded in one piece.
func (f *File) openSparse() error {
	size := int64(len(f.data))
	if size < HeaderSize+FooterSize {
		return tooShort(f.name, size)
	}
	end := min(size, TailSize)
	f.begin(0, HeaderSize)
	if err := f.bring(size-end, end); err != nil {
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
	return f.openWhole()
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

// Announcer announces parts of a section that are about to be read, so that they are loaded all at
// once rather than one after the other. Parts next to each other are one announcement. For a shard in
// memory, a mapped one that seems to be in memory, and one without a Soon, Add does nothing.
// It is not safe for concurrent use.
type Announcer struct {
	section  Section
	from, to int64 // announced next, in the section
}

// Announces reports whether announcing parts of the section has any effect now.
func (s Section) Announces() bool { return s.file != nil && s.file.announces() }

// Announcer returns an Announcer for the section.
func (s Section) Announcer() Announcer { return Announcer{section: s} }

// Add announces n bytes from off. Flush must follow the last one.
func (a *Announcer) Add(off, n int64) {
	size := a.section.Len()
	if !a.section.Announces() || off < 0 || off >= size || n <= 0 {
		return
	}
	n = min(n, size-off)
	if a.from < a.to && a.from <= off && off <= a.to+ChecksumBlock {
		a.to = max(a.to, off+n)
		return
	}
	a.Flush()
	a.from, a.to = off, off+n
}

// Flush announces what was added.
func (a *Announcer) Flush() {
	a.section.Soon(a.from, a.to-a.from)
	a.from, a.to = 0, 0
}

// Soon announces n bytes from off. Bytes beyond the section, and those that were read before, are
// left out.
func (s Section) Soon(off, n int64) {
	start, end := s.place()
	if !s.Announces() || off < 0 || off >= end-start || n <= 0 {
		return
	}
	if off = start + off; off >= s.file.inPlace && s.file.inPlace > 0 {
		return
	}
	first, last := off>>checksumShift, (min(off+n, end)-1)>>checksumShift
	for first <= last && s.file.isVerified(first) {
		first++
	}
	for first <= last && s.file.isVerified(last) {
		last--
	}
	if first <= last {
		from := first << checksumShift
		s.file.begin(from, min((last+1)<<checksumShift, s.file.bodyLength())-from)
	}
}

// AnnounceHeads announces the first n bytes of sections, which opening a shard reads. Sections that
// are near each other are one announcement.
func (f *File) AnnounceHeads(n int64, tags ...Tag) {
	if !f.announces() {
		return
	}
	from, to := int64(0), int64(0)
	for i, tag := range f.tags {
		start, end := f.starts[i], min(f.starts[i]+n, f.starts[i+1])
		if start == end || !slices.Contains(tags, tag) {
			continue
		}
		if start > to+ChecksumBlock {
			f.begin(from, to-from)
			from = start
		}
		to = end
	}
	f.begin(from, to-from)
}

// begin begins to load bytes that may be missing.
func (f *File) begin(off, n int64) {
	switch {
	case n <= 0:
	case f.soon != nil:
		f.soon(off, n)
	default:
		f.readSoon(off, n)
	}
}
