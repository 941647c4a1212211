package eliasfano

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// List is a view over an encoded sequence. It is immutable, safe for concurrent
// use and keeps nothing on the heap. The zero value is an empty list.
type List struct {
	layout
	data []byte
}

// Open opens the list at the start of data and returns how many bytes it takes.
// In constant time, it checks that all of the list is there, but not that its
// values ascend.
func Open(data []byte) (List, int, error) {
	n, used := binary.Uvarint(data)
	if used <= 0 || n > MaxLen {
		return List{}, 0, errors.New("the number of values is malformed")
	}
	universe, more := binary.Uvarint(data[used:])
	if more <= 0 {
		return List{}, 0, errors.New("the universe is malformed")
	}
	l, err := newLayout(int(n), universe, used+more)
	if err != nil {
		return List{}, 0, err
	}
	end := l.end()
	if end > len(data) {
		return List{}, 0, fmt.Errorf("a list of %d values below %d takes %d bytes, %d are left", n, universe, end, len(data))
	}
	return List{layout: l, data: data[:end:end]}, end, nil
}

// Len returns the number of values.
func (l *List) Len() int { return l.n }

// At returns value i; 0 if there is none.
func (l *List) At(i int) uint64 {
	if uint(i) >= uint(l.n) {
		return 0
	}
	return l.value(i, l.selectOne(i))
}

// At2 returns the values i and i+1; 0 for a value that does not exist. In a
// list of boundaries these are the start and the end of a thing.
func (l *List) At2(i int) (a, b uint64) {
	if uint(i) >= uint(l.n) {
		return 0, l.At(i + 1)
	}
	pos := l.selectOne(i)
	a = l.value(i, pos)
	if i+1 == l.n {
		return a, 0
	}
	return a, l.value(i+1, l.nextOne(i+1, pos+1))
}

// nextOne is selectOne(i) for a one at or after bit from. It scans for close
// ones, and uses the directory for others.
func (l *List) nextOne(i, from int) int {
	word := from / wordBits
	w := l.word(word) &^ (1<<(from%wordBits) - 1)
	for range blockBits / wordBits {
		if w != 0 {
			return word*wordBits + bits.TrailingZeros64(w)
		}
		word++
		w = l.word(word)
	}
	return l.selectOne(i)
}

// value computes value i, whose one is at bit pos. Hostile bytes could make it
// any number, so it is limited to the universe.
func (l *List) value(i, pos int) uint64 {
	high := uint64(max(pos-i, 0))
	return min(high<<l.lowBits|l.lowOf(i), l.universe-1)
}

// lowOf returns the low bits of value i. The load stays within the data, since
// the low bits are followed by at least one word of high bits.
func (l *List) lowOf(i int) uint64 {
	at := uint64(i) * uint64(l.lowBits)
	off, shift := l.low+int(at/8), uint(at%8)
	v := le.Uint64(l.data[off:]) >> shift
	if shift+l.lowBits > wordBits {
		v |= uint64(l.data[off+8]) << (wordBits - shift)
	}
	return v & (1<<l.lowBits - 1)
}

// word returns a word of high bits; zero after the last.
func (l *List) word(i int) uint64 {
	off := l.high + i*(wordBits/8)
	if off >= l.dir {
		return 0
	}
	return le.Uint64(l.data[off:])
}

// onesBefore returns the number of ones before a block.
func (l *List) onesBefore(block int) int {
	if l.blocks <= 1 {
		return 0
	}
	return int(le.Uint32(l.data[l.dir+block*rankSize:]))
}

// zerosBefore returns the number of zeros before a block; hostile bytes may
// make it negative.
func (l *List) zerosBefore(block int) int { return block*blockBits - l.onesBefore(block) }
