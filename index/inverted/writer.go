package inverted

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inorder"
	"github.com/trawl-search/trawl/index/ngram"
)

// pieceSize is about the size of the pieces in which sections are written.
const pieceSize = 64 << 10

// inMemory never spills.
var inMemory = inorder.BufferConfig{Memory: math.MaxInt64}

// writer writes the posting lists of terms, in the order of their numbers. It holds lists and tails,
// encoded, until all are there.
type writer struct {
	tags         Tags
	encoder      encoder // of those that are not held yet
	lists, tails *inorder.Buffer
	table        tableWriter
}

// newWriter starts to write. blocks has, for each superblock of the text, the number of blocks up to
// the last one in which a term starts, 0 if none does. The caller must call close.
func newWriter(tags Tags, blocks []uint8, hold inorder.BufferConfig) *writer {
	return &writer{tags: tags, encoder: encoder{blocks: blocks}, lists: inorder.NewBuffer(hold), tails: inorder.NewBuffer(hold)}
}

// append appends the list of the next term.
func (w *writer) append(r *run) error {
	w.table.add(w.encoder.append(r))
	if w.encoder.lists.len() < pieceSize && w.encoder.tails.len() < pieceSize {
		return nil
	}
	return w.hold(&w.encoder)
}

// hold takes over what was encoded.
func (w *writer) hold(e *encoder) error {
	if _, err := w.lists.Write(e.lists.bytes()); err != nil {
		return fmt.Errorf("hold posting lists: %w", err)
	}
	if _, err := w.tails.Write(e.tails.bytes()); err != nil {
		return fmt.Errorf("hold the tails of posting lists: %w", err)
	}
	e.lists.reset()
	e.tails.reset()
	return nil
}

// write writes the three sections.
func (w *writer) write(to format.SectionWriter) error {
	if err := w.hold(&w.encoder); err != nil {
		return err
	}
	for _, section := range []struct {
		tag  format.Tag
		held *inorder.Buffer
	}{{w.tags.Lists, w.lists}, {w.tags.Tails, w.tails}} {
		_ = to.Begin(section.tag, format.Required) // the writer's errors stay until End
		if _, err := section.held.WriteTo(to); err != nil {
			return fmt.Errorf("write section %s: %w", section.tag, err)
		}
		if err := to.End(); err != nil {
			return fmt.Errorf("write section %s: %w", section.tag, err)
		}
	}
	return w.table.write(to, w.tags, w.encoder.blocks)
}

// close frees memory and files.
func (w *writer) close() error { return errors.Join(w.lists.Close(), w.tails.Close()) }

// encoder encodes lists and their tails. It reuses its memory from list to list.
type encoder struct {
	blocks       []uint8 // of each superblock, up to the last one in which a term starts
	list         listEncoder
	tail         tailEncoder
	lists, tails bitWriter
}

// encoded has the number of bytes of a list and its tail, and of its postings.
type encoded struct{ list, tail, postings int }

// append encodes a list.
func (e *encoder) append(r *run) encoded {
	list, tail := e.lists.len(), e.tails.len()
	e.list.append(&e.lists, r.superblocks, superblockBits(uint32(len(e.blocks))))
	e.tail.append(&e.tails, e.blocks, r)
	return encoded{e.lists.len() - list, e.tails.len() - tail, len(r.superblocks)}
}

// tableWriter collects the table: a few bytes for each term.
type tableWriter struct {
	terms                uint32
	postings             uint64
	ngrams, lists, tails sums
}

// addNgram names the next term.
func (t *tableWriter) addNgram(id uint64) { t.ngrams.add(id - t.ngrams.last) }

// add adds the list of the next term.
func (t *tableWriter) add(e encoded) {
	t.terms++
	t.postings += uint64(e.postings)
	t.lists.add(uint64(e.list))
	t.tails.add(uint64(e.tail))
}

// write writes the table of a text with those block counts.
func (t *tableWriter) write(w format.SectionWriter, tags Tags, blocks []uint8) (err error) {
	data := binary.LittleEndian.AppendUint32(nil, t.terms)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(blocks)))
	data = binary.LittleEndian.AppendUint64(data, t.postings)
	if !tags.words() {
		data, err = t.ngrams.appendTo(data, t.terms, ngram.Space)
	}
	for _, ends := range []*sums{&t.lists, &t.tails} {
		if err == nil {
			data, err = ends.appendTo(data, t.terms, ends.last+min(uint64(t.terms), 1))
		}
	}
	if err == nil {
		err = w.WriteSection(tags.Table, format.Required, appendBlockCounts(data, blocks))
	}
	if err != nil {
		return fmt.Errorf("write the table of posting lists: %w", err)
	}
	return nil
}

// sums has ascending numbers.
type sums struct {
	deltas []byte // as uvarints
	last   uint64
}

// add adds a number that is that much more than the last one.
func (s *sums) add(delta uint64) {
	s.deltas = binary.AppendUvarint(s.deltas, delta)
	s.last += delta
}

// appendTo encodes all of the n numbers.
func (s *sums) appendTo(dst []byte, n uint32, universe uint64) ([]byte, error) {
	list, sum := eliasfano.NewBuilder(int(n), universe), uint64(0)
	for rest := s.deltas; len(rest) > 0; {
		delta, size := binary.Uvarint(rest)
		rest, sum = rest[size:], sum+delta
		_ = list.Add(sum) // errors stay until AppendTo
	}
	dst, err := list.AppendTo(dst)
	if err != nil {
		return dst, fmt.Errorf("encode %d numbers below %d: %w", n, universe, err)
	}
	return dst, nil
}
