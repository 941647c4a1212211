package postings

import (
	"fmt"
	"sync/atomic"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
)

// Index reads an index. It keeps nothing per n-gram on the heap, and reads the n-gram offset table
// on the first Lookup. It is safe for concurrent use, and valid until the file is closed. Every
// error is a *format.CorruptError or, for another layout, a format.ErrVersion.
type Index struct {
	ngrams, lists, masks format.Section
	superblocks          uint32
	postings             uint64
	opened               atomic.Pointer[table]
}

// table is the n-gram offset table.
type table struct {
	ids, listEnds, maskEnds eliasfano.List
	blocks                  blockCounts
}

// Open opens the index with these tags.
func Open(f *format.File, tags Tags) (*Index, error) {
	x := &Index{}
	for _, need := range []struct {
		tag     format.Tag
		section *format.Section
	}{{tags.Ngrams, &x.ngrams}, {tags.Postings, &x.lists}, {tags.Masks, &x.masks}} {
		var err error
		if *need.section, err = f.Need(need.tag); err != nil {
			return nil, fmt.Errorf("open the n-gram index: %w", err)
		}
	}
	if err := x.openHead(f); err != nil {
		return nil, err
	}
	return x, nil
}

func (x *Index) openHead(f *format.File) error {
	head, err := x.ngrams.Bytes(0, min(headSize, x.ngrams.Len()))
	if err != nil {
		return err
	}
	d := format.NewDecoder(f.Name(), x.ngrams.Tag(), head)
	layout := d.U8()
	x.superblocks, x.postings = d.U32(), d.U64()
	switch {
	case d.Err() != nil:
		return d.Err()
	case layout != ngramLayout:
		return fmt.Errorf("the n-gram index of %s has layout %d, this reader knows %d: %w", f.Name(), layout, ngramLayout, format.ErrVersion)
	case x.superblocks > MaxSuperblocks:
		return x.ngrams.Corruptf(1, "%d superblocks, at most %d are possible", x.superblocks, MaxSuperblocks)
	}
	return nil
}

// Announce announces that n-grams will be looked up; see format.Announcer.
func (x *Index) Announce() { x.ngrams.Soon(0, x.ngrams.Len()) }

// openedTable opens the table on the first call. Of two concurrent first calls, either result
// stays.
func (x *Index) openedTable() (*table, error) {
	if t := x.opened.Load(); t != nil {
		return t, nil
	}
	t, err := x.openTable()
	if err != nil {
		return nil, err
	}
	x.opened.Store(t)
	return t, nil
}

func (x *Index) openTable() (*table, error) {
	data, err := x.ngrams.Bytes(headSize, x.ngrams.Len()-headSize)
	if err != nil {
		return nil, err
	}
	t := &table{}
	used := 0
	for _, list := range []*eliasfano.List{&t.ids, &t.listEnds, &t.maskEnds} {
		l, n, err := eliasfano.Open(data[used:])
		if err != nil {
			return nil, x.ngrams.Corruptf(int64(headSize+used), "%v", err)
		}
		*list = l
		used += n
	}
	t.blocks = data[used:]
	if t.ids.Len() != t.listEnds.Len() || t.ids.Len() != t.maskEnds.Len() {
		return nil, x.ngrams.Corruptf(headSize, "the lists of %d n-grams end at %d and %d places", t.ids.Len(), t.listEnds.Len(), t.maskEnds.Len())
	}
	if uint64(len(t.blocks)) != blockCountsSize(x.superblocks) {
		return nil, x.ngrams.Corruptf(int64(headSize+used), "counts of the blocks of %d superblocks take %d bytes", x.superblocks, len(t.blocks))
	}
	return t, nil
}

// Superblocks returns the number of superblocks of the text.
func (x *Index) Superblocks() uint32 { return x.superblocks }

// Postings returns the number of postings, the sum of DF over all n-grams.
func (x *Index) Postings() uint64 { return x.postings }

// Ngrams returns the number of n-grams that occur.
func (x *Index) Ngrams() (int, error) {
	t, err := x.openedTable()
	if err != nil {
		return 0, err
	}
	return t.ids.Len(), nil
}

// NextNgram returns the first n-gram at or after id that occurs, or false if there is none.
func (x *Index) NextNgram(id ngram.ID) (ngram.ID, bool, error) {
	t, err := x.openedTable()
	if err != nil {
		return 0, false, err
	}
	i := t.ids.Search(uint64(id))
	if i == t.ids.Len() {
		return 0, false, nil
	}
	return ngram.ID(t.ids.At(i)), true, nil
}

// Lookup returns the posting list of an n-gram, or false if the n-gram does not occur.
func (x *Index) Lookup(id ngram.ID) (List, bool, error) {
	t, err := x.openedTable()
	if err != nil {
		return List{}, false, err
	}
	at, ok := t.find(id)
	if !ok {
		return List{}, false, nil
	}
	l, err := x.list(t, id, at)
	return l, err == nil, err
}

// span says where the list of an n-gram is, and where its masks are.
type span struct{ from, to, maskFrom, maskTo uint64 }

// find returns the place of an n-gram's list, or false if the n-gram does not occur.
func (t *table) find(id ngram.ID) (at span, ok bool) {
	i, ok := t.ids.Find(uint64(id))
	if !ok {
		return span{}, false
	}
	at.from, at.to = bounds(&t.listEnds, i)
	at.maskFrom, at.maskTo = bounds(&t.maskEnds, i)
	return at, true
}

// announceMasks is the most bytes of masks that are announced with their list: of long ones only
// some blocks may be read.
const announceMasks = 16 << 10

// announce announces the lists, which are about to be opened.
func (x *Index) announce(lists []span) {
	if !x.lists.Announces() {
		return
	}
	for _, at := range lists {
		x.lists.Soon(int64(at.from), int64(at.to-at.from))
		if n := int64(at.maskTo - at.maskFrom); n <= announceMasks {
			x.masks.Soon(int64(at.maskFrom), n)
		}
	}
}

// list opens the list of an n-gram.
func (x *Index) list(t *table, id ngram.ID, at span) (List, error) {
	if at.from > at.to || at.maskFrom > at.maskTo {
		return List{}, x.ngrams.Corruptf(headSize, "the list of n-gram %d ends before it starts", id)
	}
	l := List{index: x, blocks: t.blocks, at: int64(at.from), maskFrom: int64(at.maskFrom), maskTo: int64(at.maskTo)}
	data, err := x.lists.Bytes(l.at, int64(at.to-at.from))
	if err != nil {
		return List{}, err
	}
	if l.raw, err = openList(data, x.superblocks); err != nil {
		return List{}, l.corrupt(err)
	}
	return l, nil
}

// bounds returns where thing i starts and ends.
func bounds(ends *eliasfano.List, i int) (from, to uint64) {
	if i == 0 {
		return 0, ends.At(0)
	}
	return ends.At2(i - 1)
}

// List is the posting list of one n-gram. It is a view and safe for concurrent use.
type List struct {
	index            *Index
	blocks           blockCounts
	raw              rawList
	at               int64 // in the postings section
	maskFrom, maskTo int64 // in the masks section
}

// DF returns the number of superblocks in which the n-gram starts, at least 1.
func (l *List) DF() uint32 { return l.raw.df }

func (l *List) corrupt(err error) error { return l.index.lists.Corruptf(l.at, "%v", err) }
