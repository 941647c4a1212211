package postings

import (
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
)

// MaxCount is the most often that a word can start in one superblock: other bytes separate any two
// words.
const MaxCount = 2048

const (
	wordLayout   = 1
	wordHeadSize = 1 + 4 + 4 + 8
)

// WordIndex reads the posting lists of words, which are numbered from 0: for each word the
// superblocks in which it starts and how often, and separately the masks of the blocks. It keeps
// nothing per word on the heap. It is safe for concurrent use, and valid until the file is closed.
// Every error is a *format.CorruptError or, for another layout, a format.ErrVersion.
type WordIndex struct {
	lists, tails, table format.Section
	words, superblocks  uint32
	postings            uint64
	opened              atomic.Pointer[wordTable]
}

// wordTable has the ends of the lists and tails.
type wordTable struct {
	listEnds, tailEnds eliasfano.List
	blocks             blockCounts
}

// OpenWords opens the posting lists of words. It reads only a few bytes.
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
	case blockCountsSize(x.superblocks) > uint64(x.table.Len()): // callers may allocate memory in proportion to their number
		return nil, x.table.Corruptf(5, "%d superblocks in a table of %d bytes", x.superblocks, x.table.Len())
	}
	return x, nil
}

// Words returns the number of words.
func (x *WordIndex) Words() uint32 { return x.words }

// Superblocks returns the number of superblocks of the text.
func (x *WordIndex) Superblocks() uint32 { return x.superblocks }

// Postings returns the number of pairs of a word and a superblock in which it starts.
func (x *WordIndex) Postings() uint64 { return x.postings }

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

// Check compares the table with blocks, which has for each superblock of the text the number of
// blocks up to the last one in which a word starts, and the ends of all lists with the sections. It
// reads no posting list.
func (x *WordIndex) Check(blocks []uint8) error {
	t, err := x.openedTable()
	if err != nil {
		return err
	}
	if uint64(len(blocks)) != uint64(x.superblocks) {
		return x.table.Corruptf(5, "%d superblocks, not %d", x.superblocks, len(blocks))
	}
	for superblock, want := range blocks {
		if got := t.blocks.at(uint32(superblock)); got != want {
			return x.table.Corruptf(wordHeadSize, "words start in %d blocks of superblock %d, not in %d", got, superblock, want)
		}
	}
	for _, s := range []struct {
		ends    *eliasfano.List
		section format.Section
	}{{&t.listEnds, x.lists}, {&t.tailEnds, x.tails}} {
		if end := s.ends.At(s.ends.Len() - 1); end != uint64(s.section.Len()) { // 0 without words
			return s.section.Corruptf(int64(end), "the last list ends here, the section at %d", s.section.Len())
		}
		if !s.ends.Check() {
			return x.table.Corruptf(wordHeadSize, "where lists end is one thing when it is looked up, and another when it is counted")
		}
	}
	return nil
}

// AnnounceTable announces that lists will be looked up; see format.Announcer.
func (x *WordIndex) AnnounceTable() { x.table.Soon(0, x.table.Len()) }

// Announce announces that the lists of ascending words will be read; see format.Announcer. It
// ignores words that there are not.
func (x *WordIndex) Announce(words iter.Seq[uint32]) error {
	if !x.lists.Announces() {
		return nil
	}
	t, err := x.openedTable()
	if err != nil {
		return err
	}
	lists, tails := x.lists.Announcer(), x.tails.Announcer()
	for word := range words {
		if word >= x.words {
			continue
		}
		from, to := bounds(&t.listEnds, int(word))
		lists.Add(int64(from), int64(to-from))
		from, to = bounds(&t.tailEnds, int(word))
		tails.Add(int64(from), int64(to-from))
	}
	lists.Flush()
	tails.Flush()
	return nil
}

// List returns the posting list of a word, which must be below Words.
func (x *WordIndex) List(word uint32) (WordList, error) {
	t, err := x.openedTable()
	if err != nil {
		return WordList{}, err
	}
	if word >= x.words {
		return WordList{}, x.table.Corruptf(0, "no word %d: there are %d", word, x.words)
	}
	from, to := bounds(&t.listEnds, int(word))
	tailFrom, tailTo := bounds(&t.tailEnds, int(word))
	return x.list(t, word, span{from, to, tailFrom, tailTo})
}

// list opens the list of a word. In the span of a word, the fields for masks give the place of its
// tail.
func (x *WordIndex) list(t *wordTable, word uint32, at span) (WordList, error) {
	if at.from > at.to || at.maskFrom > at.maskTo {
		return WordList{}, x.table.Corruptf(wordHeadSize, "the list of word %d ends before it starts", word)
	}
	l := WordList{index: x, blocks: t.blocks, at: int64(at.from), tailFrom: int64(at.maskFrom), tailTo: int64(at.maskTo)}
	data, err := x.lists.Bytes(l.at, int64(at.to-at.from))
	if err != nil {
		return WordList{}, err
	}
	if l.raw, err = openList(data, x.superblocks); err != nil {
		return WordList{}, l.corrupt(err)
	}
	return l, nil
}

// WordList is the posting list of one word. It is a view and safe for concurrent use.
type WordList struct {
	index            *WordIndex
	blocks           blockCounts
	raw              rawList
	at               int64 // in the section of lists
	tailFrom, tailTo int64 // in the section of tails
}

// DF returns the number of superblocks in which the word starts, at least 1.
func (l *WordList) DF() uint32 { return l.raw.df }

// Last returns the last of these superblocks.
func (l *WordList) Last() uint32 { return l.raw.last }

func (l *WordList) corrupt(err error) error { return l.index.lists.Corruptf(l.at, "%v", err) }
