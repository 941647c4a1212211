package docstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxSetBytes bounds a coded set: roots live in etcd, and plans travel with every
// query. It holds 16,384 documents in a row, and 8,000 spread over a million.
const MaxSetBytes = 16 << 10

// ErrSet is the error of bytes that are no set.
var ErrSet = errors.New("not a set of documents")

// Set is a set of numbers of documents, such as those that are hidden in a shard, as
// roots name them and as plans carry them to searchers. The zero value is empty. It is
// immutable and safe for concurrent use.
//
// Its code is one unsigned varint for each number, ascending: the first number, then for
// each next one how many numbers lie between it and the one before. The code of an empty
// set has no bytes.
type Set struct{ numbers []uint32 }

// SetOf makes a set of numbers in any order, which it keeps and sorts.
func SetOf(numbers []uint32) Set {
	slices.Sort(numbers)
	return Set{slices.Compact(numbers)}
}

// ParseSet reads a coded set. Its errors are ErrSet.
func ParseSet(code []byte) (Set, error) {
	if len(code) > MaxSetBytes {
		return Set{}, fmt.Errorf("%w: %d bytes, at most %d", ErrSet, len(code), MaxSetBytes)
	}
	if len(code) == 0 {
		return Set{}, nil
	}
	numbers := make([]uint32, 0, len(code))
	next := uint64(0) // least number that may come
	for at := 0; at < len(code); {
		gap, n := binary.Uvarint(code[at:])
		if n <= 0 || gap > math.MaxUint32 || next+gap > math.MaxUint32 {
			return Set{}, fmt.Errorf("%w: no number at byte %d", ErrSet, at)
		}
		numbers = append(numbers, uint32(next+gap))
		next += gap + 1
		at += n
	}
	return Set{numbers}, nil
}

// Code returns the coded set. It may be longer than MaxSetBytes, which ParseSet refuses.
func (s Set) Code() []byte {
	var code []byte
	next := uint32(0)
	for _, n := range s.numbers {
		code = binary.AppendUvarint(code, uint64(n-next))
		next = n + 1
	}
	return code
}

// Len is how many numbers are in the set.
func (s Set) Len() int { return len(s.numbers) }

// Numbers are those in the set, ascending. They are not to be changed.
func (s Set) Numbers() []uint32 { return s.numbers }

// Has reports whether n is in the set. It takes time for the logarithm of Len.
func (s Set) Has(n uint32) bool {
	_, ok := slices.BinarySearch(s.numbers, n)
	return ok
}

// With returns the union of the set and more numbers, in any order.
func (s Set) With(numbers ...uint32) Set { return SetOf(slices.Concat(s.numbers, numbers)) }
