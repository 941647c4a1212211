package postings

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
)

// MaxCount is the most often that a word can start in one superblock: bytes that are
// no word bytes stand between any two.
const MaxCount = 2048

const (
	wordLayout   = 1
	wordHeadSize = 1 + 4 + 4 + 8
)

// WordIndex reads the posting lists of words, which are numbered from 0: for each word
// the superblocks in which it starts and how often, and apart from these the masks of
// the blocks. Nothing per word is on the heap. It is safe for concurrent use, and good
// until the file is closed. Every error is a *format.CorruptError, or for a newer layout
// a format.ErrVersion.
type WordIndex struct {
	lists, tails, table format.Section
	words, superblocks  uint32
	postings            uint64
	opened              atomic.Pointer[wordTable]
}

// wordTable says where the lists and tails end.
type wordTable struct {
	listEnds, tailEnds eliasfano.List
	blocks             blockCounts
}

// OpenWords opens the posting lists of words; it reads a few bytes.
func OpenWords(f *format.File) (*WordIndex, error) {
	x := &WordIndex{}
	for _, need := range []struct {
		tag     format.Tag
		section *format.Section
	}{{format.TagWordTable, &x.table}, {format.TagWordPostings, &x.lists}, {format.TagWordTails, &x.tails}} {
		var err error
		if *need.section, err = f.Need(need.tag); err != nil {
			return nil, fmt.Errorf("open the postings of words: %w", err)
		}
	}
	d, err := x.table.DecoderAt(0, min(wordHeadSize, x.table.Len()))
	if err != nil {
		return nil, err
	}
	layout := d.U8()
	x.words, x.superblocks, x.postings = d.U32(), d.U32(), d.U64()
	switch {
	case d.Err() != nil:
		return nil, d.Err()
	case layout != wordLayout:
		return nil, fmt.Errorf("the postings of words of %s have layout %d, this reader knows %d: %w", f.Name(), layout, wordLayout, format.ErrVersion)
	case x.superblocks > MaxSuperblocks:
		return nil, x.table.Corruptf(5, "%d superblocks, at most %d are possible", x.superblocks, MaxSuperblocks)
	}
	return x, nil
}

// Words is the number of words, Superblocks that of the text's superblocks, and
// Postings the number of pairs of the two.
func (x *WordIndex) Words() uint32       { return x.words }
func (x *WordIndex) Superblocks() uint32 { return x.superblocks }
func (x *WordIndex) Postings() uint64    { return x.postings }

func (x *WordIndex) openedTable() (*wordTable, error) {
	if t := x.opened.Load(); t != nil {
		return t, nil
	}
	data, err := x.table.Bytes(wordHeadSize, x.table.Len()-wordHeadSize)
	if err != nil {
		return nil, err
	}
	t, used := &wordTable{}, 0
	for _, list := range []*eliasfano.List{&t.listEnds, &t.tailEnds} {
		l, n, err := eliasfano.Open(data[used:])
		if err != nil {
			return nil, x.table.Corruptf(int64(wordHeadSize+used), "%v", err)
		}
		if l.Len() != int(x.words) {
			return nil, x.table.Corruptf(int64(wordHeadSize+used), "%d words have %d ends", x.words, l.Len())
		}
		*list = l
		used += n
	}
	t.blocks = data[used:]
	if uint64(len(t.blocks)) != blockCountsSize(x.superblocks) {
		return nil, x.table.Corruptf(int64(wordHeadSize+used), "counts of the blocks of %d superblocks take %d bytes", x.superblocks, len(t.blocks))
	}
	x.opened.Store(t)
	return t, nil
}

// List returns the posting list of a word, which must be below Words.
func (x *WordIndex) List(word uint32) (WordList, error) {
	t, err := x.openedTable()
	if err != nil {
		return WordList{}, err
	}
	if word >= x.words {
		return WordList{}, x.table.Corruptf(0, "word %d of %d is wanted", word, x.words)
	}
	from, to := bounds(&t.listEnds, int(word))
	tailFrom, tailTo := bounds(&t.tailEnds, int(word))
	if from > to || tailFrom > tailTo {
		return WordList{}, x.table.Corruptf(wordHeadSize, "the list of word %d ends before it starts", word)
	}
	l := WordList{index: x, blocks: t.blocks, at: int64(from), tailFrom: int64(tailFrom), tailTo: int64(tailTo)}
	data, err := x.lists.Bytes(l.at, int64(to-from))
	if err != nil {
		return WordList{}, err
	}
	if l.raw, err = openList(data, x.superblocks); err != nil {
		return WordList{}, l.corrupt(err)
	}
	return l, nil
}

// WordList is the posting list of one word: a view, safe for concurrent use.
type WordList struct {
	index            *WordIndex
	blocks           blockCounts
	raw              rawList
	at               int64 // in the section of lists
	tailFrom, tailTo int64 // in the section of tails
}

// DF is the number of superblocks in which the word starts, at least 1.
func (l *WordList) DF() uint32 { return l.raw.df }

// Last is the last of these superblocks.
func (l *WordList) Last() uint32 { return l.raw.last }

func (l *WordList) corrupt(err error) error { return l.index.lists.Corruptf(l.at, "%v", err) }

// WordWriter writes the posting lists of words, in the order of their numbers. One
// goroutine at a time.
type WordWriter struct {
	w                  *format.Writer
	list               listEncoder
	tail               tailEncoder
	lists, tails       bitWriter
	written            uint64 // bytes of lists
	listEnds, tailEnds []uint64
	blocks             []uint8
	postings           uint64
}

// NewWordWriter starts to write; blocks has for each superblock of the text the number
// of blocks up to the last one in which a word starts, 0 where none does.
func NewWordWriter(w *format.Writer, blocks []uint8) *WordWriter {
	_ = w.Begin(format.TagWordPostings, format.Required) // the writer's errors stay until Close
	return &WordWriter{w: w, blocks: blocks}
}

// Append appends the list of the next word: superblocks, which ascend, and for each of
// them the mask of the blocks in which the word starts and how often it does.
func (w *WordWriter) Append(superblocks []uint32, masks []uint8, counts []uint16) {
	w.list.append(&w.lists, superblocks, superblockBits(uint32(len(w.blocks))))
	w.tail.append(&w.tails, w.blocks, superblocks, masks, counts)
	w.listEnds = append(w.listEnds, w.written+uint64(w.lists.len()))
	w.tailEnds = append(w.tailEnds, uint64(w.tails.len()))
	w.postings += uint64(len(superblocks))
	if w.lists.len() >= pieceSize {
		w.flush()
	}
}

func (w *WordWriter) flush() {
	_, _ = w.w.Write(w.lists.bytes())
	w.written += uint64(w.lists.len())
	w.lists.reset()
}

// Close writes what is left: the tails, and where all ends.
func (w *WordWriter) Close() error {
	w.flush()
	if err := w.w.End(); err != nil {
		return fmt.Errorf("write the posting lists of words: %w", err)
	}
	if err := w.w.WriteSection(format.TagWordTails, format.Required, w.tails.bytes()); err != nil {
		return fmt.Errorf("write the counts of words: %w", err)
	}
	data := []byte{wordLayout}
	data = binary.LittleEndian.AppendUint32(data, uint32(len(w.listEnds)))
	data = binary.LittleEndian.AppendUint32(data, uint32(len(w.blocks)))
	data = binary.LittleEndian.AppendUint64(data, w.postings)
	var err error
	for _, ends := range [][]uint64{w.listEnds, w.tailEnds} {
		if data, err = eliasfano.Append(data, ends, universe(ends)); err != nil {
			return fmt.Errorf("encode %d ends: %w", len(ends), err)
		}
	}
	data = appendBlockCounts(data, w.blocks)
	if err := w.w.WriteSection(format.TagWordTable, format.Required, data); err != nil {
		return fmt.Errorf("write the table of words: %w", err)
	}
	return nil
}
