package inverted

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"sync/atomic"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
)

// Tags names the two sections of an index.
type Tags struct {
	Table, Lists format.Tag
}

// Tags of the indexes of a shard.
var (
	// ContentTags are the tags of the n-gram index of content.
	ContentTags = Tags{format.TagNgrams, format.TagPostings}
	// NameTags are the tags of the n-gram index of names.
	NameTags = Tags{format.TagNameNgrams, format.TagNamePostings}

	dictionaryTags = Tags{format.TagLexiconNgrams, format.TagLexiconPostings}
	wordTags       = Tags{format.TagWordTable, format.TagWordPostings}
)

// words reports whether the terms are words, which have counts, and not n-grams, which have numbers.
func (t Tags) words() bool { return t == wordTags }

// headSize is the size of the numbers at the start of a table.
const headSize = 4 + 4 + 8

// Index reads the posting lists of terms, which are numbered from 0. It keeps nothing per term on
// the heap, and reads the table when the first list is looked up. It is safe for concurrent use, and
// valid until the file is closed. Every error is a *format.CorruptError.
type Index struct {
	table, lists       format.Section
	words              bool // the terms are words
	terms, superblocks uint32
	postings           uint64
	opened             atomic.Pointer[table]
}

// table says which n-grams the terms are, and where their lists end.
type table struct {
	ngrams eliasfano.List // none for words
	ends   eliasfano.List
	blocks blockCounts
}

// Open opens the index with these tags. It reads only a few bytes.
func Open(f *format.File, tags Tags) (*Index, error) {
	x := &Index{words: tags.words()}
	for _, need := range []struct {
		tag     format.Tag
		section *format.Section
	}{{tags.Table, &x.table}, {tags.Lists, &x.lists}} {
		var err error
		if *need.section, err = f.Need(need.tag); err != nil {
			return nil, fmt.Errorf("open posting lists: %w", err)
		}
	}
	d, err := x.table.DecoderAt(0, min(headSize, x.table.Len()))
	if err != nil {
		return nil, err
	}
	x.terms, x.superblocks, x.postings = d.U32(), d.U32(), d.U64()
	switch {
	case d.Err() != nil:
		return nil, d.Err()
	case x.terms > eliasfano.MaxLen:
		return nil, x.table.Corruptf(0, "%d terms, at most %d are possible", x.terms, eliasfano.MaxLen)
	case x.superblocks > MaxSuperblocks:
		return nil, x.table.Corruptf(4, "%d superblocks, at most %d are possible", x.superblocks, MaxSuperblocks)
	case blockCountsSize(x.superblocks) > uint64(x.table.Len()): // callers may allocate memory in proportion to their number
		return nil, x.table.Corruptf(4, "%d superblocks in a table of %d bytes", x.superblocks, x.table.Len())
	}
	return x, nil
}

// openedTable opens the table on the first call. Of two concurrent first calls, either result
// stays.
func (x *Index) openedTable() (*table, error) {
	if t := x.opened.Load(); t != nil {
		return t, nil
	}
	data, err := x.table.Bytes(headSize, x.table.Len()-headSize)
	if err != nil {
		return nil, err
	}
	t, used := &table{}, 0
	lists := []*eliasfano.List{&t.ngrams, &t.ends}
	if x.words {
		lists = lists[1:]
	}
	for _, list := range lists {
		l, n, err := eliasfano.Open(data[used:])
		if err != nil {
			return nil, x.table.Corruptf(int64(headSize+used), "%v", err)
		}
		if l.Len() != int(x.terms) {
			return nil, x.table.Corruptf(int64(headSize+used), "%d terms have %d ends or n-grams", x.terms, l.Len())
		}
		*list = l
		used += n
	}
	t.blocks = data[used:]
	if uint64(len(t.blocks)) != blockCountsSize(x.superblocks) {
		return nil, x.table.Corruptf(int64(headSize+used), "block counts of %d superblocks take %d bytes", x.superblocks, len(t.blocks))
	}
	x.opened.Store(t)
	return t, nil
}

// Terms returns the number of terms. Each has at least one posting.
func (x *Index) Terms() uint32 { return x.terms }

// Superblocks returns the number of superblocks of the text.
func (x *Index) Superblocks() uint32 { return x.superblocks }

// Postings returns the number of postings, the sum of DF over all terms.
func (x *Index) Postings() uint64 { return x.postings }

// Announce announces that lists will be looked up; see format.Announcer.
func (x *Index) Announce() { x.table.Soon(0, x.table.Len()) }

// announce announces the lists at ascending places, which are about to be opened.
func (x *Index) announce(places iter.Seq[span]) {
	lists := x.lists.Announcer()
	for at := range places {
		lists.Add(at.from, at.bytes())
	}
	lists.Flush()
}

// span says where the list of a term is.
type span struct{ from, to int64 }

// bytes returns the size of the list. In a damaged index it is any number up to 1<<31.
func (s *span) bytes() int64 { return min(max(s.to-s.from, 0), math.MaxInt32) }

// find returns the place of a term's list.
func (t *table) find(term uint32) (at span) {
	at.from, at.to = bounds(&t.ends, int(term))
	return at
}

// bounds returns where thing i starts and ends.
func bounds(ends *eliasfano.List, i int) (from, to int64) {
	if i == 0 {
		return 0, int64(ends.At(0))
	}
	a, b := ends.At2(i - 1)
	return int64(a), int64(b)
}

// list returns the posting list of a term, which must be below Terms.
func (x *Index) list(term uint32) (List, error) {
	t, err := x.openedTable()
	if err != nil {
		return List{}, err
	}
	if term >= x.terms {
		return List{}, x.table.Corruptf(0, "no term %d: there are %d", term, x.terms)
	}
	var l List
	err = l.open(x, t, t.find(term))
	return l, err
}

// open opens the list at a place.
func (l *List) open(x *Index, t *table, at span) error {
	*l = List{index: x, blockCounts: t.blocks, span: at}
	if at.from > at.to {
		return x.table.Corruptf(headSize, "a list reaches from %d to %d", at.from, at.to)
	}
	data, err := x.lists.Bytes(at.from, at.to-at.from)
	if err != nil {
		return err
	}
	if err := l.readHead(data, x.superblocks); err != nil {
		return l.corrupt(err)
	}
	return nil
}

// blockCounts has, for each superblock, the number of its blocks in which terms start, in four bits
// each, the first in the lower half of a byte.
type blockCounts []byte

func appendBlockCounts(dst []byte, blocks []uint8) []byte {
	for pair := range slices.Chunk(blocks, 2) {
		both := pair[0]
		if len(pair) > 1 {
			both |= pair[1] << 4
		}
		dst = append(dst, both)
	}
	return dst
}

// blockCountsSize returns the bytes that the counts of that many superblocks take.
func blockCountsSize(superblocks uint32) uint64 { return (uint64(superblocks) + 1) / 2 }

// at returns the count of a superblock of the index.
func (c blockCounts) at(superblock uint32) uint8 {
	return c[superblock/2] >> (superblock % 2 * 4) & 15
}
