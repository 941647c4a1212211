package docstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxSetBytes bounds an encoded set, since roots are in etcd and every query carries a plan. It has
// room for 16,384 successive documents, or 8,000 spread over a million.
const MaxSetBytes = 16 << 10

// ErrSet is the error for bytes that do not encode a set.
var ErrSet = errors.New("not a set of documents")

// Set is a set of numbers of documents, such as the hidden ones of a shard. Roots store sets, and
// plans carry them to searchers. The zero value is empty. It is immutable and safe for concurrent
// use.
//
// Its code has one unsigned varint for each number, ascending: the first number, and then for each
// next one how many numbers are between it and the one before. The code of an empty set has no
// bytes.
type Set struct{ numbers []uint32 }

// SetOf makes a set of numbers in any order. It takes ownership of the slice and sorts it.
func SetOf(numbers []uint32) Set {
	slices.Sort(numbers)
	return Set{slices.Compact(numbers)}
}

// ParseSet decodes a set. Its only error is ErrSet.
func ParseSet(code []byte) (Set, error) {
	if len(code) > MaxSetBytes {
		return Set{}, fmt.Errorf("%w: %d bytes, at most %d", ErrSet, len(code), MaxSetBytes)
	}
	if len(code) == 0 {
		return Set{}, nil
	}
	numbers := make([]uint32, 0, len(code))
	next := uint64(0) // least number that may follow
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

// Code returns the encoded set. It may be longer than MaxSetBytes; ParseSet refuses such a code.
func (s Set) Code() []byte {
	var code []byte
	next := uint32(0)
	for _, n := range s.numbers {
		code = binary.AppendUvarint(code, uint64(n-next))
		next = n + 1
	}
	return code
}

// Len returns how many numbers are in the set.
func (s Set) Len() int { return len(s.numbers) }

// Numbers returns the numbers in the set, ascending. The caller must not change them.
func (s Set) Numbers() []uint32 { return s.numbers }

// Has reports whether n is in the set. Its time is logarithmic in Len.
func (s Set) Has(n uint32) bool {
	_, ok := slices.BinarySearch(s.numbers, n)
	return ok
}

// With returns the union of the set and more numbers, in any order.
func (s Set) With(numbers ...uint32) Set { return SetOf(slices.Concat(s.numbers, numbers)) }
