package postings

import (
	"encoding/binary"
	"fmt"

	"github.com/trawl-search/trawl/index/format"
)

// Tags names the three sections of an index.
type Tags struct {
	Ngrams, Postings, Masks format.Tag
}

// Tags of the n-gram indexes of a shard.
var (
	// ContentTags are the tags of the index over content.
	ContentTags = Tags{format.TagNgrams, format.TagPostings, format.TagMasks}
	// NameTags are the tags of the index over names.
	NameTags = Tags{format.TagNameNgrams, format.TagNamePostings, format.TagNameMasks}
	// LexiconTags are the tags of the index over the lexicon.
	LexiconTags = Tags{format.TagLexiconNgrams, format.TagLexiconPostings, format.TagLexiconMasks}
)

// ngramLayout is the layout of an index.
const ngramLayout = 2

const (
	headSize  = 1 + 4 + 8
	pieceSize = 64 << 10 // a section is written in pieces of about this size
)

// scratch is the memory that writing needs, kept for the next index.
type scratch struct {
	sorted sorted
	list   listEncoder
	lists  bitWriter
	mask   maskEncoder
	masks  pieces
	table  tableWriter
}

// Write writes the index of a text of that many superblocks, which must be more than any that was
// added, as three sections. It streams the posting lists in pieces of about 64 KiB, and keeps the
// masks until the lists are written, in the memory of the postings. Afterwards, and after all
// errors except ErrMisuse, the Builder is as after Reset.
func (b *Builder) Write(w format.SectionWriter, tags Tags, superblocks uint32) error {
	if superblocks < uint32(len(b.blocks)) || superblocks > MaxSuperblocks {
		return fmt.Errorf("%w: an index of %d superblocks that already has %d", ErrMisuse, superblocks, len(b.blocks))
	}
	defer b.Reset()
	b.skipTo(superblocks)
	if err := b.writeLists(w, tags.Postings); err != nil {
		return fmt.Errorf("write posting lists: %w", err)
	}
	if err := b.scratch.masks.write(w, tags.Masks); err != nil {
		return fmt.Errorf("write masks of postings: %w", err)
	}
	return b.scratch.table.write(w, tags.Ngrams, b.blocks, b.postings)
}

// writeLists writes the posting lists, and collects the masks.
func (b *Builder) writeLists(w format.SectionWriter, tag format.Tag) error {
	s := &b.scratch
	s.table.reset()
	s.masks.reset()
	s.lists.reset()
	s.sorted.room(&b.groups)
	_ = w.Begin(tag, format.Required) // the writer's errors stay until End
	written := uint64(0)
	for number := range b.groups.groups {
		if b.groups.groups[number].n == 0 {
			continue
		}
		s.sorted.sort(&b.groups, number)
		s.masks.free = append(s.masks.free, b.groups.groups[number].chunks...)
		start := 0
		for i, end := range &s.sorted.ends {
			if start == end {
				continue
			}
			b.encode(s.sorted.superblocks[start:end], s.sorted.masks[start:end])
			s.table.add(uint64(number*groupSize+i), written+uint64(s.lists.len()), s.masks.len())
			s.masks.store()
			start = end
			if s.lists.len() >= pieceSize {
				_, _ = w.Write(s.lists.bytes())
				written += uint64(s.lists.len())
				s.lists.reset()
			}
		}
	}
	_, _ = w.Write(s.lists.bytes())
	return w.End()
}

// encode appends the list and the masks of one n-gram.
func (b *Builder) encode(superblocks []uint32, masks []uint8) {
	s := &b.scratch
	s.list.append(&s.lists, superblocks, superblockBits(uint32(len(b.blocks))))
	s.mask.append(&s.masks.last, b.blocks, superblocks, masks)
}

// pieces collects a section in chunks that are not used any more: those of groups that are written.
// It takes less room than their postings did.
type pieces struct {
	last       bitWriter // what does not fill a chunk, or only a few
	full, free []*chunk
}

func (p *pieces) reset() {
	p.last.reset()
	p.full, p.free = p.full[:0], p.free[:0]
}

// len returns the number of bytes collected.
func (p *pieces) len() uint64 {
	return uint64(len(p.full))*chunkEntries*entrySize + uint64(p.last.len())
}

// store moves data into chunks once it has become long. The data must end in a whole byte.
func (p *pieces) store() {
	if p.last.len() < pieceSize {
		return
	}
	data := p.last.bytes()
	for ; len(data) >= chunkEntries*entrySize; data = data[chunkEntries*entrySize:] {
		to := p.take()
		for i := range to {
			to[i] = binary.LittleEndian.Uint32(data[i*entrySize:])
		}
		p.full = append(p.full, to)
	}
	p.last.at = copy(p.last.data, data)
}

func (p *pieces) take() *chunk {
	if len(p.free) == 0 {
		return new(chunk)
	}
	c := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return c
}

func (p *pieces) write(w format.SectionWriter, tag format.Tag) error {
	_ = w.Begin(tag, format.Required) // the writer's errors stay until End
	var data [chunkEntries * entrySize]byte
	for _, chunk := range p.full {
		for i, v := range chunk {
			binary.LittleEndian.PutUint32(data[i*entrySize:], v)
		}
		_, _ = w.Write(data[:])
	}
	_, _ = w.Write(p.last.bytes())
	return w.End()
}
