package inverted

import "github.com/trawl-search/trawl/index/eliasfano"

// Reader reads the lists of many words, one after the other and each as a whole. For ascending words
// it is faster than an Iterator for each list. It allocates nothing. It is not safe for concurrent
// use.
type Reader struct {
	table *table
	ends  endReader
	it    Iterator
}

// reset prepares the reader for the lists of an index.
func (r *Reader) reset(x *Index) error {
	t, err := x.openedTable()
	if err != nil {
		return err
	}
	r.table, r.ends = t, newEndReader(t)
	r.it.list.index = x
	return nil
}

// Open moves before the first posting of a word, and returns how many it has.
func (r *Reader) Open(word uint32) (df uint32, err error) {
	x := r.it.list.index
	if word >= x.terms {
		return 0, x.table.Corruptf(0, "no term %d: there are %d", word, x.terms)
	}
	if err := r.it.list.open(x, r.table, r.ends.at(word)); err != nil {
		r.it.done = true
		return 0, err
	}
	r.it.rewind()
	return r.it.list.raw.df, nil
}

// Block returns the superblocks and counts of the next postings, valid until the next call. It
// returns none at the end, or after an error, which Err returns.
func (r *Reader) Block() (superblocks []uint32, counts []uint16) { return r.it.Block() }

// DefinedAt reports whether the word is defined in superblock i of the block that Block returned
// last. Call it only if AnyDefined returns true.
func (r *Reader) DefinedAt(i int) bool { return r.it.DefinedAt(i) }

// AnyDefined reports whether the word is defined in any of the superblocks that Block returned last.
func (r *Reader) AnyDefined() bool { return r.it.AnyDefined() }

// Err returns the error that ended a list, nil at its end.
func (r *Reader) Err() error { return r.it.Err() }

// endReader finds the lists of ascending terms.
type endReader struct {
	table        *table
	lists, tails eliasfano.Iterator
	next         uint32 // the term whose ends come next
	last         span   // of the term before
}

func newEndReader(t *table) endReader {
	return endReader{table: t, lists: t.listEnds.From(0), tails: t.tailEnds.From(0)}
}

// at returns the place of a term's list.
func (r *endReader) at(term uint32) span {
	if term < r.next {
		*r = newEndReader(r.table)
	}
	if term > r.next {
		r.lists.Skip(int(term - 1))
		r.tails.Skip(int(term - 1))
		r.read()
	}
	r.next = term + 1
	return r.read()
}

// read reads the next ends.
func (r *endReader) read() span {
	listEnd, _ := r.lists.Next()
	tailEnd, _ := r.tails.Next()
	r.last = span{r.last.to, int64(listEnd), r.last.tailTo, int64(tailEnd)}
	return r.last
}
