package postings

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
)

// WordWriter writes the posting lists of words, in the order of their numbers. It is not safe for
// concurrent use.
type WordWriter struct {
	w            format.SectionWriter
	list         listEncoder
	tail         tailEncoder
	lists, tails bitWriter
	full         [][]byte // earlier tails, in pieces
	ends         wordEnds
	blocks       []uint8
}

// NewWordWriter starts to write. blocks has, for each superblock of the text, the number of blocks
// up to the last one in which a word starts, 0 if none does.
func NewWordWriter(w format.SectionWriter, blocks []uint8) *WordWriter {
	_ = w.Begin(format.TagWordPostings, format.Required) // the writer's errors stay until Close
	return &WordWriter{w: w, blocks: blocks}
}

// Append appends the list of the next word: its superblocks, which ascend, and for each of them the
// mask of the blocks in which the word starts, how often it starts there, and whether it is defined
// there.
func (w *WordWriter) Append(superblocks []uint32, masks []uint8, counts []uint16, defined []bool) {
	list, tail := w.lists.len(), w.tails.len()
	w.list.append(&w.lists, superblocks, superblockBits(uint32(len(w.blocks))))
	w.tail.append(&w.tails, w.blocks, superblocks, masks, counts, defined)
	w.ends.add(w.lists.len()-list, w.tails.len()-tail, len(superblocks))
	if w.lists.len() >= pieceSize {
		w.flush()
	}
	if w.tails.len() >= pieceSize {
		w.full = append(w.full, bytes.Clone(w.tails.bytes()))
		w.tails.reset()
	}
}

func (w *WordWriter) flush() {
	_, _ = w.w.Write(w.lists.bytes())
	w.lists.reset()
}

// Close writes the tails and the table of ends.
func (w *WordWriter) Close() error {
	w.flush()
	if err := w.w.End(); err != nil {
		return fmt.Errorf("write the posting lists of words: %w", err)
	}
	_ = w.w.Begin(format.TagWordTails, format.Required)
	for _, piece := range w.full {
		_, _ = w.w.Write(piece)
	}
	_, _ = w.w.Write(w.tails.bytes())
	if err := w.w.End(); err != nil {
		return fmt.Errorf("write the counts of words: %w", err)
	}
	return w.ends.write(w.w, w.blocks)
}

// wordEnds collects the ends of the lists and tails of words: a few bytes for each.
type wordEnds struct {
	words       uint32
	postings    uint64
	list, tail  uint64 // ends of the last ones
	listLengths []byte // as uvarints
	tailLengths []byte
}

// add adds the next word, with the lengths of its list and tail in bytes.
func (e *wordEnds) add(list, tail, postings int) {
	e.words++
	e.postings += uint64(postings)
	e.list, e.tail = e.list+uint64(list), e.tail+uint64(tail)
	e.listLengths = binary.AppendUvarint(e.listLengths, uint64(list))
	e.tailLengths = binary.AppendUvarint(e.tailLengths, uint64(tail))
}

// write writes the table of words of a text with those block counts.
func (e *wordEnds) write(w format.SectionWriter, blocks []uint8) error {
	data := []byte{wordLayout}
	data = binary.LittleEndian.AppendUint32(data, e.words)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(blocks)))
	data = binary.LittleEndian.AppendUint64(data, e.postings)
	var err error
	for _, ends := range []struct {
		lengths []byte
		last    uint64
	}{{e.listLengths, e.list}, {e.tailLengths, e.tail}} {
		if data, err = appendEnds(data, ends.lengths, e.words, ends.last); err != nil {
			return err
		}
	}
	data = appendBlockCounts(data, blocks)
	if err := w.WriteSection(format.TagWordTable, format.Required, data); err != nil {
		return fmt.Errorf("write the table of words: %w", err)
	}
	return nil
}

// appendEnds encodes the ends of things with these lengths, the last one at last.
func appendEnds(dst, lengths []byte, n uint32, last uint64) ([]byte, error) {
	universe := last + 1
	if n == 0 {
		universe = 0
	}
	list, end := eliasfano.NewBuilder(int(n), universe), uint64(0)
	for len(lengths) > 0 {
		length, size := binary.Uvarint(lengths)
		lengths, end = lengths[size:], end+length
		_ = list.Add(end) // errors stay until AppendTo
	}
	dst, err := list.AppendTo(dst)
	if err != nil {
		return dst, fmt.Errorf("encode %d ends: %w", n, err)
	}
	return dst, nil
}
