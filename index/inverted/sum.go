package inverted

import (
	"math/bits"

	"github.com/trawl-search/trawl/index/ngram"
)

// Hash mixes a posting by two folded multiplications. The sum of hashes shows whether two
// sets of postings are equal, in any order.
func Hash(id ngram.ID, superblock uint32, mask uint8) uint64 {
	hi, lo := bits.Mul64(uint64(id)<<8|uint64(mask)|1<<40, 0x9e3779b97f4a7c15^uint64(superblock)<<17)
	hi, lo = bits.Mul64(hi^lo, 0xd1342543de82ef95)
	return hi ^ lo
}

// Sum reads all lists of an n-gram index and returns the sum of the hashes of their postings. It
// calls tick before each list and stops with its error.
func (x *Index) Sum(tick func() error) (sum uint64, err error) {
	t, err := x.openedTable()
	if err != nil {
		return 0, err
	}
	var it Iterator
	for term := range x.terms {
		id := t.ngrams.At(int(term))
		if found, ok := t.ngrams.Find(id); !ok || found != int(term) {
			return 0, x.table.Corruptf(headSize, "n-gram %d is not found where it is", id)
		}
		list, err := x.list(term)
		if err != nil {
			return 0, err
		}
		if err := tick(); err != nil {
			return 0, err
		}
		for it.reset(&list); it.Next(); {
			sum += Hash(ngram.ID(id), it.Superblock(), it.Mask())
		}
		if it.Err() != nil {
			return 0, it.Err()
		}
	}
	return sum, nil
}
