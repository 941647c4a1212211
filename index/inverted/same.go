package inverted

import (
	"bytes"
	"cmp"
)

// SamePostings compares all posting lists with those of an index of the same words and parts, except for the definitions, which other rules
// may have found.
func (x *Words) SamePostings(want *Words) error {
	have, err := x.lists.openedTable()
	if err != nil {
		return err
	}
	other, err := want.lists.openedTable()
	if err != nil {
		return err
	}
	if x.lists.terms != want.lists.terms || x.Postings() != want.Postings() || !bytes.Equal(have.blocks, other.blocks) {
		return x.lists.table.Corruptf(0, "%d lists with %d postings, or their block counts, are not those of the content", x.lists.terms, x.Postings())
	}
	var a, b Iterator
	for term := range x.lists.terms {
		list, err := x.lists.list(term)
		if err != nil {
			return err
		}
		wanted, err := want.lists.list(term)
		if err != nil {
			return err
		}
		same := list.DF() == wanted.DF()
		a.Reset(list)
		b.Reset(wanted)
		for same && a.Next() && b.Next() {
			same = a.Superblock() == b.Superblock() && a.Count() == b.Count() && a.Mask() == b.Mask()
		}
		if err := cmp.Or(a.Err(), b.Err()); err != nil {
			return err
		}
		if !same {
			return x.lists.lists.Corruptf(list.from, "posting list %d is not that of the content", term)
		}
	}
	return nil
}
