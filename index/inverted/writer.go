package inverted

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
)

// pieceSize is about the size of the pieces in which a section is written.
const pieceSize = 64 << 10

// writer writes the posting lists of terms, in the order of their numbers: it streams the lists, and
// keeps the tails until these are written.
type writer struct {
	w            format.SectionWriter
	tags         Tags
	encoder      encoder
	lists, tails bitWriter
	full         [][]byte // earlier tails, in pieces
	table        tableWriter
}

// newWriter starts to write. blocks has, for each superblock of the text, the number of blocks up to
// the last one in which a term starts, 0 if none does.
func newWriter(w format.SectionWriter, tags Tags, blocks []uint8) *writer {
	_ = w.Begin(tags.Lists, format.Required) // the writer's errors stay until close
	return &writer{w: w, tags: tags, encoder: encoder{blocks: blocks}}
}

// append appends the list of the next term.
func (w *writer) append(r *run) {
	w.table.add(w.encoder.append(&w.lists, &w.tails, r))
	if w.lists.len() >= pieceSize {
		w.flush()
	}
	if w.tails.len() >= pieceSize {
		w.full = append(w.full, bytes.Clone(w.tails.bytes()))
		w.tails.reset()
	}
}

func (w *writer) flush() {
	_, _ = w.w.Write(w.lists.bytes())
	w.lists.reset()
}

// close writes the tails and the table.
func (w *writer) close() error {
	w.flush()
	if err := w.w.End(); err != nil {
		return fmt.Errorf("write posting lists: %w", err)
	}
	_ = w.w.Begin(w.tags.Tails, format.Required)
	for _, piece := range w.full {
		_, _ = w.w.Write(piece)
	}
	_, _ = w.w.Write(w.tails.bytes())
	if err := w.w.End(); err != nil {
		return fmt.Errorf("write the tails of posting lists: %w", err)
	}
	return w.table.write(w.w, w.tags, w.encoder.blocks)
}

// encoder encodes lists and their tails. It reuses its memory from list to list.
type encoder struct {
	blocks []uint8 // of each superblock, up to the last one in which a term starts
	list   listEncoder
	tail   tailEncoder
}

// encoded has the number of bytes of a list and its tail, and of its postings.
type encoded struct{ list, tail, postings int }

// append encodes a list.
func (e *encoder) append(lists, tails *bitWriter, r *run) encoded {
	list, tail := lists.len(), tails.len()
	e.list.append(lists, r.superblocks, superblockBits(uint32(len(e.blocks))))
	e.tail.append(tails, e.blocks, r)
	return encoded{lists.len() - list, tails.len() - tail, len(r.superblocks)}
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
