package postings

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

// Sum reads all lists and returns the sum of the hashes of their postings. It calls tick
// before each list and stops with its error.
func (x *Index) Sum(tick func() error) (sum uint64, err error) {
	var it *Iterator
	for id, ok, err := x.NextNgram(0); ok || err != nil; id, ok, err = x.NextNgram(id + 1) {
		if err != nil {
			return 0, err
		}
		list, _, err := x.Lookup(id)
		if err != nil {
			return 0, err
		}
		if err := tick(); err != nil {
			return 0, err
		}
		it = list.Iterator(it)
		for superblock, ok := it.Next(); ok; superblock, ok = it.Next() {
			mask, err := it.Mask()
			if err != nil {
				return 0, err
			}
			sum += Hash(id, superblock, mask)
		}
		if err := it.Err(); err != nil {
			return 0, err
		}
	}
	return sum, nil
}
