package postings

import (
	"encoding/binary"
	"fmt"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
)

// Tags names the three sections of an index.
type Tags struct {
	Ngrams, Postings, Masks format.Tag
}

// Tags of the two indexes of a shard.
var (
	// ContentTags are those of the index over content.
	ContentTags = Tags{format.TagNgrams, format.TagPostings, format.TagMasks}
	// NameTags are those of the index over names.
	NameTags = Tags{format.TagNameNgrams, format.TagNamePostings, format.TagNameMasks}
)

const (
	layoutVersion = 1
	headSize      = 1 + 4 + 8
	pieceSize     = 64 << 10 // a section is written in pieces of about this size
)

// scratch is the memory that writing needs, kept for the next index.
type scratch struct {
	list        listEncoder
	masks       maskEncoder
	superblocks []uint32
	maskBytes   []uint8
	ids         []uint64
	listEnds    []uint64
	maskEnds    []uint64
	piece       []byte
}

// Write writes the index of a text of that many superblocks, which must be more than
// any that was added, as three sections. It streams them in pieces of about 64 KiB.
// The postings stay; call Reset to start the next index.
func (b *Builder) Write(w *format.Writer, tags Tags, superblocks uint32) error {
	if superblocks < b.next || superblocks > MaxSuperblocks {
		return fmt.Errorf("%w: an index of %d superblocks, of which %d are taken", ErrMisuse, superblocks, b.next)
	}
	s := &b.scratch
	s.reset()
	if err := b.writePostings(w, tags.Postings); err != nil {
		return fmt.Errorf("write posting lists: %w", err)
	}
	if err := b.writeMasks(w, tags.Masks); err != nil {
		return fmt.Errorf("write masks of postings: %w", err)
	}
	if err := b.writeTable(w, tags.Ngrams, superblocks); err != nil {
		return fmt.Errorf("write the n-gram offset table: %w", err)
	}
	return nil
}

func (s *scratch) reset() {
	s.ids, s.listEnds, s.maskEnds = s.ids[:0], s.listEnds[:0], s.maskEnds[:0]
	s.masks.counts = [maskClasses][256]uint64{}
}

// collect returns the postings of one n-gram; they are valid until the next call.
func (b *Builder) collect(id ngram.ID) ([]uint32, []uint8) {
	c := &b.chains[id]
	s := &b.scratch
	if int(c.df) > len(s.superblocks) {
		s.superblocks = make([]uint32, c.df+c.df/4)
		s.maskBytes = make([]uint8, c.df+c.df/4)
	}
	superblocks, masks := s.superblocks[:c.df], s.maskBytes[:c.df]
	c.collect(&b.pool, superblocks, masks)
	return superblocks, masks
}

// writePostings writes the posting lists, and counts the masks for their codes.
func (b *Builder) writePostings(w *format.Writer, tag format.Tag) error {
	s := &b.scratch
	p := piece{w: w, data: s.piece[:0]}
	_ = w.Begin(tag, format.Required) // the writer's errors stay until End
	for id := range b.chains {
		if b.chains[id].df == 0 {
			continue
		}
		superblocks, masks := b.collect(ngram.ID(id))
		p.data = s.list.append(p.data, superblocks)
		for len(masks) > 0 {
			n := min(blockSize, len(masks))
			s.masks.count(masks[:n])
			masks = masks[n:]
		}
		s.ids = append(s.ids, uint64(id))
		s.listEnds = append(s.listEnds, p.end())
	}
	return p.close(s)
}

func (b *Builder) writeMasks(w *format.Writer, tag format.Tag) error {
	s := &b.scratch
	p := piece{w: w}
	_ = w.Begin(tag, format.Required)
	p.data = s.masks.build(s.piece[:0])
	for _, id := range s.ids {
		_, masks := b.collect(ngram.ID(id))
		p.data = s.masks.append(p.data, masks)
		s.maskEnds = append(s.maskEnds, p.end())
	}
	return p.close(s)
}

func (b *Builder) writeTable(w *format.Writer, tag format.Tag, superblocks uint32) error {
	s := &b.scratch
	data := s.piece[:0]
	data = append(data, layoutVersion)
	data = binary.LittleEndian.AppendUint32(data, superblocks)
	data = binary.LittleEndian.AppendUint64(data, b.postings)
	var err error
	for _, list := range []struct {
		values   []uint64
		universe uint64
	}{{s.ids, ngram.Space}, {s.listEnds, universe(s.listEnds)}, {s.maskEnds, universe(s.maskEnds)}} {
		if data, err = eliasfano.Append(data, list.values, list.universe); err != nil {
			return fmt.Errorf("encode %d values below %d: %w", len(list.values), list.universe, err)
		}
	}
	s.piece = data
	return w.WriteSection(tag, format.Required, data)
}

// universe is one more than the last of the ends.
func universe(ends []uint64) uint64 {
	if len(ends) == 0 {
		return 0
	}
	return ends[len(ends)-1] + 1
}

// piece collects what is appended to a section and writes it now and then.
type piece struct {
	w       *format.Writer
	data    []byte
	written uint64
}

// end returns where in the section the data ends, writing it if it is enough.
func (p *piece) end() uint64 {
	end := p.written + uint64(len(p.data))
	if len(p.data) >= pieceSize {
		p.flush()
	}
	return end
}

func (p *piece) flush() {
	_, _ = p.w.Write(p.data) // the writer's errors stay until End
	p.written += uint64(len(p.data))
	p.data = p.data[:0]
}

// close writes what is left, gives the memory back and ends the section.
func (p *piece) close(s *scratch) error {
	p.flush()
	s.piece = p.data
	return p.w.End()
}
