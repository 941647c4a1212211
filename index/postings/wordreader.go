package postings

import "github.com/trawl-search/trawl/index/eliasfano"

// WordReader reads the lists of many words, one after the other and each as a whole. For ascending
// words it is faster than List and WordIterator: most words have few postings, and it skips the
// work that only longer lists need. It allocates nothing. It is not safe for concurrent use.
type WordReader struct {
	index        *WordIndex
	table        *wordTable
	lists, tails endReader
	it           WordIterator // of a list of several blocks
	values       [blockSize]uint32
	countsOf     [blockSize]uint16
	superblocks  []uint32 // the only block of a list, until it is returned
	counts       []uint16
	defs         definitions
	long         bool // the list has several blocks
}

// Reset prepares the reader for the lists of an index.
func (r *WordReader) Reset(x *WordIndex) error {
	t, err := x.openedTable()
	if err != nil {
		return err
	}
	r.index, r.table = x, t
	r.lists, r.tails = newEndReader(&t.listEnds), newEndReader(&t.tailEnds)
	return nil
}

// Open moves before the first posting of a word, and returns how many it has.
func (r *WordReader) Open(word uint32) (df uint32, err error) {
	x := r.index
	if word >= x.words {
		return 0, x.table.Corruptf(0, "no word %d: there are %d", word, x.words)
	}
	var at span
	at.from, at.to = r.lists.bounds(int(word))
	at.maskFrom, at.maskTo = r.tails.bounds(int(word))
	if at.from > at.to || at.maskFrom > at.maskTo {
		return 0, x.table.Corruptf(wordHeadSize, "the list of word %d ends before it starts", word)
	}
	data, err := x.lists.Bytes(int64(at.from), int64(at.to-at.from))
	if err != nil {
		return 0, err
	}
	raw, err := openList(data, x.superblocks)
	if err == nil && raw.blocks() == 1 {
		r.superblocks, err = raw.decode(0, &r.values)
	}
	if err != nil {
		return 0, x.lists.Corruptf(int64(at.from), "%v", err)
	}
	if r.long = raw.blocks() > 1; r.long {
		r.it.Reset(WordList{index: x, blocks: r.table.blocks, raw: raw, at: int64(at.from), tailFrom: int64(at.maskFrom), tailTo: int64(at.maskTo)})
		return raw.df, nil
	}
	r.counts = r.countsOf[:len(r.superblocks)]
	return raw.df, r.readCounts(at)
}

// readCounts reads the counts of a list of one block.
func (r *WordReader) readCounts(at span) error {
	data, err := r.index.tails.Bytes(int64(at.maskFrom), int64(at.maskTo-at.maskFrom))
	if err != nil {
		return err
	}
	bits := bitReader{data: data}
	r.defs = bits.definitions(len(r.counts))
	if err := bits.counts(r.counts); err != nil || bits.overrun() {
		return r.index.tails.Corruptf(int64(at.maskFrom), "%v", errTail)
	}
	return nil
}

// Block returns the superblocks and counts of the next postings, valid until the next call. It
// returns none at the end, or after an error, which Err returns.
func (r *WordReader) Block() (superblocks []uint32, counts []uint16) {
	if r.long {
		return r.it.Block()
	}
	superblocks, r.superblocks = r.superblocks, nil
	return superblocks, r.counts
}

// DefinedAt reports whether the word is defined in superblock i of the block that Block returned
// last. Call it only if AnyDefined returns true.
func (r *WordReader) DefinedAt(i int) bool {
	if r.long {
		return r.it.DefinedAt(i)
	}
	return r.defs.at(i)
}

// AnyDefined reports whether the word is defined in any of the superblocks that Block returned last.
func (r *WordReader) AnyDefined() bool {
	if r.long {
		return r.it.AnyDefined()
	}
	return r.defs.any()
}

// Err returns the error that ended a list, nil at its end.
func (r *WordReader) Err() error {
	if r.long {
		return r.it.Err()
	}
	return nil
}

// endReader reads the starts and ends of things with ascending numbers.
type endReader struct {
	list *eliasfano.List
	ends eliasfano.Iterator
	next int    // number of the thing whose end comes next
	last uint64 // end of the one before
}

func newEndReader(ends *eliasfano.List) endReader { return endReader{list: ends, ends: ends.From(0)} }

func (r *endReader) bounds(i int) (from, to uint64) {
	if i < r.next {
		*r = newEndReader(r.list)
	}
	if i > r.next {
		r.ends.Skip(i - 1)
		r.last, _ = r.ends.Next()
	}
	from = r.last
	r.last, _ = r.ends.Next()
	r.next = i + 1
	return from, r.last
}
