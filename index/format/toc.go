package format

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

var (
	le = binary.LittleEndian
	// castagnoli is the CRC for which processors have an instruction.
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// SectionInfo is one entry of the table of contents.
type SectionInfo struct {
	Tag   Tag
	Flags Flags
	// Offset and Length in bytes, in the file.
	Offset, Length int64
	// CRC is the CRC32C of the whole section.
	CRC uint32
}

// Versions of a shard.
type Versions struct {
	// Writer is the version that wrote the shard.
	Writer uint32
	// MinReader is the lowest version that a reader must have.
	MinReader uint32
}

// footer is the end of a shard. Its fields are in the order of the file.
type footer struct {
	size         int64
	bodyLength   int64
	tocOffset    int64
	tocLength    uint32
	tocCRC       uint32
	checksumsCRC uint32
	versions     Versions
}

func tooShort(name string, size int64) error {
	return corruptf(name, partFooter, -1, "the file has %d bytes, fewer than header and footer", size)
}

// appendFooter appends the footer; parseFooter is its inverse.
func appendFooter(dst []byte, f *footer) []byte {
	start := len(dst)
	dst = le.AppendUint64(dst, uint64(f.size))
	dst = le.AppendUint64(dst, uint64(f.bodyLength))
	dst = le.AppendUint64(dst, uint64(f.tocOffset))
	dst = le.AppendUint32(dst, f.tocLength)
	dst = le.AppendUint32(dst, f.tocCRC)
	dst = le.AppendUint32(dst, f.checksumsCRC)
	dst = le.AppendUint32(dst, ChecksumBlock)
	dst = le.AppendUint32(dst, f.versions.Writer)
	dst = le.AppendUint32(dst, f.versions.MinReader)
	dst = le.AppendUint32(dst, 0)
	dst = le.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
	return append(dst, FooterMagic...)
}

func parseFooter(name string, size int64, b []byte) (footer, error) {
	at := size - FooterSize
	switch {
	case string(b[56:64]) != FooterMagic:
		return footer{}, corruptf(name, partFooter, at, "no magic number at the end: not a shard, or cut")
	case le.Uint32(b[52:]) != crc32.Checksum(b[:52], castagnoli):
		return footer{}, corruptf(name, partFooter, at, "checksum of the footer does not match")
	}
	f := footer{
		size:         int64(le.Uint64(b)),
		bodyLength:   int64(le.Uint64(b[8:])),
		tocOffset:    int64(le.Uint64(b[16:])),
		tocLength:    le.Uint32(b[24:]),
		tocCRC:       le.Uint32(b[28:]),
		checksumsCRC: le.Uint32(b[32:]),
		versions:     Versions{Writer: le.Uint32(b[40:]), MinReader: le.Uint32(b[44:])},
	}
	if v := f.versions; v.Writer < Version || v.MinReader > Version {
		return footer{}, fmt.Errorf("shard %s has format version %d, for readers of version %d; this one reads version %d only: %w", name, v.Writer, v.MinReader, Version, ErrVersion)
	}
	if block := le.Uint32(b[36:]); block != ChecksumBlock {
		return footer{}, corruptf(name, partFooter, at+36, "checksums cover %d bytes each, not %d", block, ChecksumBlock)
	}
	if le.Uint32(b[48:]) != 0 {
		return footer{}, corruptf(name, partFooter, at+48, "reserved field is not zero")
	}
	return f, f.check(name, size)
}

// check checks the places in a footer against each other. Nothing can overflow,
// because each place is first compared with the file's size.
func (f *footer) check(name string, size int64) error {
	at := size - FooterSize
	switch {
	case f.size != size:
		return corruptf(name, partFooter, at, "the file has %d bytes, its footer says %d", size, f.size)
	case f.bodyLength < HeaderSize || f.bodyLength > at:
		return corruptf(name, partFooter, at+8, "a body of %d bytes is impossible", f.bodyLength)
	case f.tocOffset < f.bodyLength || f.tocOffset > at || f.tocOffset-f.bodyLength != checksumsLength(f.bodyLength):
		return corruptf(name, partFooter, at+16, "table of contents at %d does not follow the checksums", f.tocOffset)
	case int64(f.tocLength) != at-f.tocOffset || f.tocLength%EntrySize != 0 || f.tocLength > MaxSections*EntrySize:
		return corruptf(name, partFooter, at+24, "a table of contents of %d bytes is impossible", f.tocLength)
	}
	return nil
}

// checksumsLength is the size of the checksums of a body.
func checksumsLength(body int64) int64 {
	return (body + ChecksumBlock - 1) >> checksumShift * ChecksumSize
}

func appendEntry(dst []byte, s *SectionInfo) []byte {
	dst = le.AppendUint32(dst, uint32(s.Tag))
	dst = le.AppendUint32(dst, uint32(s.Flags))
	dst = le.AppendUint64(dst, uint64(s.Offset))
	dst = le.AppendUint64(dst, uint64(s.Length))
	dst = le.AppendUint32(dst, s.CRC)
	return le.AppendUint32(dst, 0)
}

func parseEntry(b []byte) SectionInfo {
	return SectionInfo{
		Tag:    Tag(le.Uint32(b)),
		Flags:  Flags(le.Uint32(b[4:])),
		Offset: int64(le.Uint64(b[8:])),
		Length: int64(le.Uint64(b[16:])),
		CRC:    le.Uint32(b[24:]),
	}
}

// checkTOC checks that the sections lie back to back, from the header to the
// end of the body, and that each tag occurs once.
func checkTOC(name string, f *footer, entries []byte) error {
	if crc32.Checksum(entries, castagnoli) != f.tocCRC {
		return corruptf(name, partContents, f.tocOffset, "checksum of the table of contents does not match")
	}
	next, seen := int64(HeaderSize), make(map[Tag]bool, len(entries)/EntrySize)
	for i := 0; i < len(entries); i += EntrySize {
		s, at := parseEntry(entries[i:]), f.tocOffset+int64(i)
		switch {
		case seen[s.Tag]:
			return corruptf(name, partContents, at, "section %s is there twice", s.Tag)
		case s.Offset != next || s.Length < 0 || s.Length > f.bodyLength-next:
			return corruptf(name, partContents, at, "section %s lies at [%d,+%d), not at %d within the body", s.Tag, s.Offset, s.Length, next)
		case le.Uint32(entries[i+28:]) != 0:
			return corruptf(name, partContents, at, "reserved field of section %s is not zero", s.Tag)
		case s.Flags&^knownFlags != 0:
			return fmt.Errorf("shard %s: section %s has flags %#x that this version does not know: %w", name, s.Tag, uint32(s.Flags), ErrVersion)
		case s.Flags&Required != 0 && !slices.Contains(tags, s.Tag):
			return fmt.Errorf("shard %s: section %s is required and this version does not know it: %w", name, s.Tag, ErrVersion)
		}
		seen[s.Tag], next = true, next+s.Length
	}
	if next != f.bodyLength {
		return corruptf(name, partContents, f.tocOffset, "sections end at %d, the body at %d", next, f.bodyLength)
	}
	return nil
}
