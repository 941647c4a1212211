package inverted

import "github.com/trawl-search/trawl/index/eliasfano"

// Reader is an Iterator for the lists of many words. For ascending words it is faster than to look up
// each list.
type Reader struct {
	Iterator

	table *table
	ends  endReader
}

// reset prepares the reader for the lists of an index.
func (r *Reader) reset(x *Index) error {
	t, err := x.openedTable()
	if err != nil {
		return err
	}
	r.table, r.ends = t, newEndReader(t)
	r.list.index = x
	return nil
}

// Open moves before the first posting of a word, and returns how many it has.
func (r *Reader) Open(word uint32) (df uint32, err error) {
	x := r.list.index
	if word >= x.terms {
		return 0, x.table.Corruptf(0, "no term %d: there are %d", word, x.terms)
	}
	if err := r.list.open(x, r.table, r.ends.at(word)); err != nil {
		r.done = true
		return 0, err
	}
	r.rewind()
	return r.list.raw.df, nil
}

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
