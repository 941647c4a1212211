package eliasfano

import "math/bits"

// Iterator walks a list, which is faster than calling At for successive values. The zero value is
// at the end. It is not safe for concurrent use.
type Iterator struct {
	list *List
	i    int
	word int
	bits uint64
}

// From returns an iterator whose first value is number i.
func (l *List) From(i int) Iterator {
	if uint(i) >= uint(l.n) {
		return Iterator{}
	}
	pos := l.selectOne(i)
	word := pos / wordBits
	return Iterator{list: l, i: i, word: word, bits: l.word(word) &^ (1<<(pos%wordBits) - 1)}
}

// Next returns the next value, false at the end.
func (it *Iterator) Next() (uint64, bool) {
	l := it.list
	if l == nil || it.i >= l.n {
		return 0, false
	}
	for it.bits == 0 {
		it.word++
		if l.high+it.word*(wordBits/8) >= l.dir { // hostile: fewer ones than values
			it.list = nil
			return 0, false
		}
		it.bits = l.word(it.word)
	}
	v := l.value(it.i, it.word*wordBits+bits.TrailingZeros64(it.bits))
	it.bits &= it.bits - 1
	it.i++
	return v, true
}
