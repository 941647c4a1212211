package format

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
)

// SectionWriter takes sections one after the other. Its first error stays: every later call returns it. Writer is one.
type SectionWriter interface {
	// Begin starts a section. The one before must have ended, and each tag may occur once.
	Begin(tag Tag, flags Flags) error
	// Write adds to the open section.
	Write(p []byte) (int, error)
	// End ends the open section.
	End() error
	// WriteSection writes a section that is complete in memory.
	WriteSection(tag Tag, flags Flags, data []byte) error
}

// Writer writes a shard to a stream, section by section:
//
//	w := format.NewWriter(f)
//	w.Begin(format.TagUnits, format.Required)
//	w.Write(…)
//	w.End()
//	err := w.Close()
//
// The first error, whether of the stream or of use, stays: every later call returns it, so checking
// Close is enough. Writes go directly to the stream, which should be buffered, except those of sections in the
// tail of the shard: the Writer keeps them in memory and writes them when it is closed. Besides, it needs four
// bytes for each 16 KiB, and the table of contents. It is not safe for concurrent use.
type Writer struct {
	w   io.Writer
	err error

	offset    int64
	block     uint32 // CRC of the block that is being filled
	checksums []byte
	digest    hash.Hash

	sections []SectionInfo
	tail     []heldSection // written by Close
	open     bool
	hold     bool // the open section is the last one of the tail
	closed   bool
}

// heldSection is a section of the tail.
type heldSection struct {
	tag   Tag
	flags Flags
	data  []byte
}

// NewWriter starts a shard and writes the header.
func NewWriter(w io.Writer) *Writer {
	fw := &Writer{w: w, digest: sha256.New()}
	header := le.AppendUint32([]byte(HeaderMagic), Version)
	fw.body(le.AppendUint32(header, Version))
	return fw
}

// Begin starts a section. The one before must have ended, and each tag may occur once.
func (w *Writer) Begin(tag Tag, flags Flags) error {
	switch {
	case w.err != nil:
	case w.closed || w.open:
		w.misusef("section %s begins in an open section or after the end", tag)
	case flags&^knownFlags != 0:
		w.misusef("section %s has unknown flags %#x", tag, uint32(flags))
	case len(w.sections)+len(w.tail) == MaxSections:
		w.misusef("more than %d sections", MaxSections)
	case slices.ContainsFunc(w.sections, func(s SectionInfo) bool { return s.Tag == tag }),
		slices.ContainsFunc(w.tail, func(s heldSection) bool { return s.tag == tag }):
		w.misusef("section %s is written twice", tag)
	default:
		if w.open, w.hold = true, tag.inTail(); w.hold {
			w.tail = append(w.tail, heldSection{tag: tag, flags: flags})
		} else {
			w.begin(tag, flags)
		}
	}
	return w.err
}

func (w *Writer) begin(tag Tag, flags Flags) {
	w.sections = append(w.sections, SectionInfo{Tag: tag, Flags: flags, Offset: w.offset})
}

// Write adds to the open section.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err == nil && !w.open {
		w.misusef("bytes are written outside of a section")
	}
	if w.err != nil {
		return 0, w.err
	}
	if w.hold {
		s := &w.tail[len(w.tail)-1]
		s.data = append(s.data, p...)
		return len(p), nil
	}
	return w.write(p)
}

// write writes to the last section.
func (w *Writer) write(p []byte) (int, error) {
	s := &w.sections[len(w.sections)-1]
	s.CRC = crc32.Update(s.CRC, castagnoli, p)
	s.Length += int64(len(p))
	w.body(p)
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// End ends the open section.
func (w *Writer) End() error {
	if w.err == nil && !w.open {
		w.misusef("no section is open")
	}
	w.open = false
	return w.err
}

// WriteSection writes a section that is complete in memory.
func (w *Writer) WriteSection(tag Tag, flags Flags, data []byte) error {
	_ = w.Begin(tag, flags) // errors stay, and End returns them
	_, _ = w.Write(data)
	return w.End()
}

// Close writes the tail, checksums, table of contents and footer. It does not close the stream. Further calls
// do nothing and return the same error.
func (w *Writer) Close() error {
	if w.err == nil && w.open {
		w.misusef("the shard ends in an open section")
	}
	if w.closed || w.err != nil {
		return w.err
	}
	w.closed = true
	for _, held := range w.tail {
		w.begin(held.tag, held.flags)
		_, _ = w.write(held.data) // errors stay
	}
	w.tail = nil
	body := w.offset
	if body%ChecksumBlock != 0 {
		w.endBlock()
	}
	var toc []byte
	for i := range w.sections {
		toc = appendEntry(toc, &w.sections[i])
	}
	tail := appendFooter(toc, &footer{
		size:         body + int64(len(w.checksums)+len(toc)) + FooterSize,
		bodyLength:   body,
		tocOffset:    body + int64(len(w.checksums)),
		tocLength:    uint32(len(toc)),
		tocCRC:       crc32.Checksum(toc, castagnoli),
		checksumsCRC: crc32.Checksum(w.checksums, castagnoli),
		versions:     Versions{Writer: Version, MinReader: Version},
	})
	w.raw(w.checksums)
	w.raw(tail)
	return w.err
}

// Size returns the number of bytes written so far, without the tail; after Close, the file's size.
func (w *Writer) Size() int64 { return w.offset }

// Sum returns the SHA-256 of all bytes written; after Close, the shard's digest.
func (w *Writer) Sum() [sha256.Size]byte { return [sha256.Size]byte(w.digest.Sum(nil)) }

// Sections returns the sections written so far, the last one perhaps in part; those of the tail are written by Close.
func (w *Writer) Sections() []SectionInfo { return slices.Clone(w.sections) }

// body writes bytes that the checksums cover.
func (w *Writer) body(p []byte) {
	start := w.offset
	w.raw(p)
	for len(p) > 0 {
		n := min(len(p), int(ChecksumBlock-start%ChecksumBlock))
		w.block = crc32.Update(w.block, castagnoli, p[:n])
		p, start = p[n:], start+int64(n)
		if start%ChecksumBlock == 0 {
			w.endBlock()
		}
	}
}

func (w *Writer) endBlock() {
	w.checksums = le.AppendUint32(w.checksums, w.block)
	w.block = 0
}

func (w *Writer) raw(p []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.w.Write(p); err != nil {
		w.err = fmt.Errorf("write %d bytes at %d of a shard: %w", len(p), w.offset, err)
		return
	}
	w.digest.Write(p)
	w.offset += int64(len(p))
}

func (w *Writer) misusef(format string, args ...any) {
	w.err = fmt.Errorf("%w: %s", ErrMisuse, fmt.Sprintf(format, args...))
}
