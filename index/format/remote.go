package format

import (
	"bytes"
	"fmt"
	"hash/crc32"
)

// recentSpans is for how many sections a remote shard keeps the bytes that were read last. Those with the
// most reads come first in a shard.
const recentSpans = 8

// longSpan is the least length in bytes of what is not kept as recent: it is returned as it is.
const longSpan = 4 * ChecksumBlock

// span has whole checksum blocks of a remote shard, which were found to be sound.
type span struct {
	from int64
	data []byte
}

// copied returns the bytes of a remote shard from one offset to another. Reads near each other, as they are for neighbouring lists and units, check
// the same checksum block once.
func (s Section) copied(from, to int64) ([]byte, error) {
	f := s.file
	if to-from >= longSpan {
		var long span
		if err := long.read(s, from, to); err != nil {
			return nil, err
		}
		return long.data[from-long.from:][: to-from : to-from], nil
	}
	kept := &f.recent[s.number%recentSpans]
	recent := kept.Swap(nil) // it is this reader's until it is put back
	if recent == nil {
		recent = new(span)
	}
	if from < recent.from || to > recent.from+int64(len(recent.data)) {
		if err := recent.read(s, from, to); err != nil {
			return nil, err
		}
	}
	data := bytes.Clone(recent.data[from-recent.from:][:to-from])
	kept.Store(recent)
	return data, nil
}

// read reads the checksum blocks with the bytes from one offset to another, and checks them.
func (p *span) read(s Section, from, to int64) error {
	f := s.file
	from &^= ChecksumBlock - 1
	to = min((to+ChecksumBlock-1)&^(ChecksumBlock-1), f.bodyLength())
	if n := int(to - from); n <= cap(p.data) {
		p.data = p.data[:n]
	} else {
		p.data = make([]byte, n)
	}
	p.from = from
	if err := f.read(p.data, from); err != nil {
		return fmt.Errorf("read %d bytes at %d of shard %s: %w", to-from, from, f.name, err)
	}
	for at := from; at < to; at += ChecksumBlock {
		block := p.data[at-from : min(at+ChecksumBlock, to)-from]
		if crc32.Checksum(block, castagnoli) != f.checksum(at>>checksumShift) {
			return corruptf(f.name, s.Tag().String(), at, "checksum of the %d bytes here does not match", ChecksumBlock)
		}
	}
	return nil
}
