// Package docset codes sets of documents compactly: those that are hidden in a
// shard, as roots name them and as plans carry them to searchers.
//
// A set is written as one unsigned varint for each number, ascending: the first
// number, then for each next one how many numbers lie between it and the one
// before. A set without numbers is no bytes.
package docset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxBytes bounds a coded set: roots live in etcd, and plans travel with every
// query. It holds 16,384 documents in a row, and 8,000 spread over a million.
const MaxBytes = 16 << 10

// ErrCoding is the error of bytes that are no set.
var ErrCoding = errors.New("not a set of documents")

// Set is a set of numbers of documents. The zero value is empty. It is immutable
// and safe for concurrent use.
type Set struct{ numbers []uint32 }

// Of makes a set of numbers in any order, which it keeps and sorts.
func Of(numbers []uint32) Set {
	slices.Sort(numbers)
	return Set{slices.Compact(numbers)}
}

// Parse reads a coded set. Its errors are ErrCoding.
func Parse(code []byte) (Set, error) {
	if len(code) > MaxBytes {
		return Set{}, fmt.Errorf("%w: %d bytes, at most %d", ErrCoding, len(code), MaxBytes)
	}
	if len(code) == 0 {
		return Set{}, nil
	}
	numbers := make([]uint32, 0, len(code))
	next := uint64(0) // least number that may come
	for at := 0; at < len(code); {
		gap, n := binary.Uvarint(code[at:])
		if n <= 0 || gap > math.MaxUint32 || next+gap > math.MaxUint32 {
			return Set{}, fmt.Errorf("%w: no number at byte %d", ErrCoding, at)
		}
		numbers = append(numbers, uint32(next+gap))
		next += gap + 1
		at += n
	}
	return Set{numbers}, nil
}

// Code returns the coded set. It may be longer than MaxBytes, which Parse refuses.
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
func (s Set) With(numbers ...uint32) Set { return Of(slices.Concat(s.numbers, numbers)) }
