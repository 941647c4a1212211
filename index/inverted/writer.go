package inverted

import (
	"encoding/binary"
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

// writer writes the posting lists of terms, in the order of their numbers. It holds them, encoded, until all are there.
type writer struct {
	tags    Tags
	encoder listEncoder // with those that are not held yet
	held    *inorder.Buffer
	table   tableWriter
}

// newWriter starts to write. blocks has, for each superblock of the text, the number of blocks up to
// the last one in which a term starts, 0 if none does. The caller must call close.
func newWriter(tags Tags, blocks []uint8, hold inorder.BufferConfig) *writer {
	return &writer{tags: tags, encoder: listEncoder{blocks: blocks}, held: inorder.NewBuffer(hold)}
}

// append appends the list of the next term.
func (w *writer) append(r *run) error {
	w.table.add(w.encoder.append(r), len(r.superblocks))
	if w.encoder.lists.len() < pieceSize {
		return nil
	}
	return w.hold(&w.encoder)
}

// hold takes over what was encoded.
func (w *writer) hold(e *listEncoder) error {
	if _, err := w.held.Write(e.lists.bytes()); err != nil {
		return fmt.Errorf("hold posting lists: %w", err)
	}
	e.lists.reset()
	return nil
}

// write writes the two sections.
func (w *writer) write(to format.SectionWriter) error {
	if err := w.hold(&w.encoder); err != nil {
		return err
	}
	_ = to.Begin(w.tags.Lists, format.Required) // the writer's errors stay until End
	if _, err := w.held.WriteTo(to); err != nil {
		return fmt.Errorf("write section %s: %w", w.tags.Lists, err)
	}
	if err := to.End(); err != nil {
		return fmt.Errorf("write section %s: %w", w.tags.Lists, err)
	}
	return w.table.write(to, w.tags, w.encoder.blocks)
}

// close frees memory and files.
func (w *writer) close() error { return w.held.Close() } //nolint:wrapcheck // says what it closes

// tableWriter collects the table: a few bytes for each term.
type tableWriter struct {
	terms        uint32
	postings     uint64
	ngrams, ends sums
}

// addNgram names the next term.
func (t *tableWriter) addNgram(id uint64) { t.ngrams.add(id - t.ngrams.last) }

// add adds the next term, whose list has that many bytes and postings.
func (t *tableWriter) add(size, postings int) {
	t.terms++
	t.postings += uint64(postings)
	t.ends.add(uint64(size))
}

// write writes the table of a text with those block counts.
func (t *tableWriter) write(w format.SectionWriter, tags Tags, blocks []uint8) (err error) {
	data := binary.LittleEndian.AppendUint32(nil, t.terms)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(blocks)))
	data = binary.LittleEndian.AppendUint64(data, t.postings)
	if !tags.words() {
		data, err = t.ngrams.appendTo(data, t.terms, ngram.Space)
	}
	if err == nil {
		data, err = t.ends.appendTo(data, t.terms, t.ends.last+min(uint64(t.terms), 1))
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
