package format

import (
	"context"
	"fmt"
	"hash/crc32"
)

// verifyStep is how much Verify reads between two looks at its context.
const verifyStep = 1 << 20

// Verify reads the whole shard and checks every checksum again, whatever was
// checked before. It returns the first *CorruptError, or the context's error if
// the context ends first.
func (f *File) Verify(ctx context.Context) error {
	return f.Guard(func() error {
		if err := f.verifyBlocks(ctx); err != nil {
			return err
		}
		for _, s := range f.Sections() {
			if err := f.verifySection(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *File) verifyBlocks(ctx context.Context) error {
	for block := range f.blocks() {
		if block%(verifyStep/ChecksumBlock) == 0 {
			if err := f.stopped(ctx); err != nil {
				return err
			}
			from := block << checksumShift
			if err := f.bring(from, min(verifyStep, f.bodyLength()-from)); err != nil {
				return err
			}
		}
		if !f.sound(block) {
			off := block << checksumShift
			return corruptf(f.name, f.partAt(off), off, "checksum of the %d bytes here does not match", ChecksumBlock)
		}
	}
	return nil
}

// Recheck checks blocks again that an earlier read found to be sound: memory and disks change bytes
// also after they were read. It begins at a block, 0 at first, and checks at most verifyStep bytes.
// It returns the block to continue with, 0 after the last one, and the bytes that it read. It
// returns the first *CorruptError.
func (f *File) Recheck(from int64) (next, read int64, err error) {
	err = f.Guard(func() error {
		for next = from; next < f.blocks() && read < verifyStep; next++ {
			if !f.isVerified(next) {
				continue
			}
			if !f.sound(next) {
				off := next << checksumShift
				return corruptf(f.name, f.partAt(off), off, "checksum of the %d bytes here does not match any more", ChecksumBlock)
			}
			read += ChecksumBlock
		}
		return nil
	})
	if next >= f.blocks() {
		next = 0
	}
	return next, read, err
}

func (f *File) verifySection(ctx context.Context, s SectionInfo) error {
	data, crc := f.data[s.Offset:][:s.Length], uint32(0)
	for len(data) > 0 {
		if err := f.stopped(ctx); err != nil {
			return err
		}
		n := min(len(data), verifyStep)
		crc, data = crc32.Update(crc, castagnoli, data[:n]), data[n:]
	}
	if crc != s.CRC {
		return corruptf(f.name, s.Tag.String(), s.Offset, "checksum of the section does not match")
	}
	return nil
}

func (f *File) stopped(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("verify shard %s: %w", f.name, err)
	}
	return nil
}

// partAt names what lies at an offset: a section or a part of the frame.
func (f *File) partAt(off int64) string {
	for i, tag := range f.tags {
		if off >= f.starts[i] && off < f.starts[i+1] {
			return tag.String()
		}
	}
	switch size := int64(len(f.data)); {
	case off < HeaderSize:
		return partHeader
	case off >= size-FooterSize:
		return partFooter
	case off < f.bodyLength()+f.blocks()*ChecksumSize:
		return partChecksums
	default:
		return partContents
	}
}
