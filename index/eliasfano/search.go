package eliasfano

import (
	"math/bits"
	"sort"
)

// Search returns the index of the first value that is at least x; Len if there
// is none.
func (l *List) Search(x uint64) int {
	if l.n == 0 || x >= l.universe {
		return l.n
	}
	high := int(x >> l.lowBits)
	pos := 0 // of the bit after the zero that ends the values with a lower high part
	if high > 0 {
		pos = l.selectZero(high-1) + 1
	}
	i := max(pos-high, 0)
	low := x & (1<<l.lowBits - 1)
	for range 8 {
		if i >= l.n || !l.bit(pos) || l.lowOf(i) >= low {
			return min(i, l.n)
		}
		i, pos = i+1, pos+1
	}
	from, to := i, min(l.selectZero(high)-high, l.n) // they share their high part
	return min(from+sort.Search(to-from, func(k int) bool { return l.lowOf(from+k) >= low }), l.n)
}

// Find is Search that also reports whether the value is x.
func (l *List) Find(x uint64) (i int, equal bool) {
	i = l.Search(x)
	return i, i < l.n && l.At(i) == x
}

// Last returns the index of the last value that is at most x; -1 if there is
// none. In a list of boundaries it is the last thing that starts at or before
// x.
func (l *List) Last(x uint64) int {
	if x >= l.universe {
		return l.n - 1
	}
	return l.Search(x+1) - 1
}

func (l *List) bit(pos int) bool { return l.word(pos/wordBits)>>(pos%wordBits)&1 == 1 }

// selectOne returns the position of one number i, below Len. In hostile bytes
// it may be any position.
func (l *List) selectOne(i int) int {
	block := 0
	if l.blocks > 1 {
		from, to := l.sampled(l.ones(), i/sample, samples(l.n))
		for from < to { // the last block that has at most i ones before it
			if mid := int(uint(from+to+1) / 2); l.onesBefore(mid) <= i {
				from = mid
			} else {
				to = mid - 1
			}
		}
		block = from
	}
	return l.selectIn(block, i-l.onesBefore(block), 0)
}

// selectZero is selectOne for zeros.
func (l *List) selectZero(i int) int {
	block := 0
	if l.blocks > 1 {
		from, to := l.sampled(l.zeros(), i/sample, samples(l.lastZero()+1))
		for from < to {
			if mid := int(uint(from+to+1) / 2); l.zerosBefore(mid) <= i {
				from = mid
			} else {
				to = mid - 1
			}
		}
		block = from
	}
	return l.selectIn(block, i-l.zerosBefore(block), ^uint64(0))
}

// sampled returns the blocks between which the ones (or zeros) of a sample lie.
func (l *List) sampled(off, k, count int) (from, to int) {
	last := l.blocks - 1
	from, to = min(int(le.Uint32(l.data[off+k*rankSize:])), last), last
	if k+1 < count {
		to = min(int(le.Uint32(l.data[off+(k+1)*rankSize:])), last)
	}
	return from, to
}

// selectIn finds the one with rank k in a block whose words are XORed with
// flip. It returns the end of the block if hostile bytes have no such one.
func (l *List) selectIn(block, k int, flip uint64) int {
	word := block * (blockBits / wordBits)
	for range blockBits / wordBits {
		w := l.word(word) ^ flip
		ones := bits.OnesCount64(w)
		if uint(k) < uint(ones) {
			return word*wordBits + selectInWord(w, uint(k))
		}
		k -= ones
		word++
	}
	return word * wordBits
}

const (
	everyByte = 0x0101010101010101
	topBits   = 0x8080808080808080
)

// selectInWord returns the position of one number k of a word that has it:
// sums of ones over the bytes at once (Vigna, "Broadword implementation of
// rank/select queries", 2008), then a table for the byte.
func selectInWord(x uint64, k uint) int {
	s := x - x>>1&0x5555555555555555
	s = s&0x3333333333333333 + s>>2&0x3333333333333333
	s = (s + s>>4) & 0x0f0f0f0f0f0f0f0f * everyByte
	place := uint(bits.OnesCount64(((uint64(k)*everyByte|topBits)-s)&topBits)) * 8
	k -= uint(s<<8>>place) & 0xff
	return int(place) + int(selectInByte[k&7][x>>place&0xff])
}

// selectInByte has the position of one number k of each byte.
var selectInByte = func() (table [8][256]uint8) {
	for b := range 256 {
		k := 0
		for pos := range 8 {
			if b>>pos&1 == 1 {
				table[k][b] = uint8(pos)
				k++
			}
		}
	}
	return table
}()
