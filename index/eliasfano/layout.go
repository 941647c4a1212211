package eliasfano

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

const (
	// MaxLen is the most values of a list.
	MaxLen = 1<<31 - 1

	wordBits  = 64
	blockBits = 512 // the directory has an entry for each block of high bits
	sample    = 512 // one in this many ones and zeros is sampled
	rankSize  = 4   // bytes of an entry of the directory or of a sample
)

var le = binary.LittleEndian

// layout says where the parts of a list are, which follows from the number of
// values and the universe. Readers keep many of them, so it has no fields for
// what is quickly computed.
type layout struct {
	n        int
	universe uint64
	lowBits  uint
	blocks   int
	// Offsets of low bits, high bits and directory in the data.
	low, high, dir int
}

// newLayout computes the layout of n values below universe after a header of
// header bytes.
func newLayout(n int, universe uint64, header int) (layout, error) {
	if n < 0 || n > MaxLen {
		return layout{}, fmt.Errorf("a list of %d values, at most %d are possible", n, MaxLen)
	}
	switch {
	case n == 0:
		return layout{universe: universe, low: header, high: header, dir: header}, nil
	case universe == 0:
		return layout{}, fmt.Errorf("%d values below zero", n)
	}
	return layOut(n, universe, uint(max(bits.Len64(universe/uint64(n)), 1)-1), header), nil
}

// layOut computes the layout of n ≥ 1 values with lowBits low bits each.
func layOut(n int, universe uint64, lowBits uint, header int) layout {
	l := layout{n: n, universe: universe, lowBits: lowBits, low: header}
	high := n + l.lastZero() + 1
	l.blocks = (high + blockBits - 1) / blockBits
	l.high = l.low + int((uint64(n)*uint64(l.lowBits)+7)/8)
	l.dir = l.high + (high+wordBits-1)/wordBits*(wordBits/8)
	return l
}

// ones returns the offset of the samples of ones, zeros that of the samples of
// zeros; end returns the offset after the list.
func (l *layout) ones() int  { return l.dir + l.blocks*rankSize }
func (l *layout) zeros() int { return l.ones() + samples(l.n)*rankSize }

func (l *layout) end() int {
	if l.blocks <= 1 {
		return l.dir
	}
	return l.zeros() + samples(l.lastZero()+1)*rankSize
}

func samples(n int) int { return (n + sample - 1) / sample }

// lastZero returns the number of the last zero among the high bits.
func (l *layout) lastZero() int { return int((l.universe - 1) >> l.lowBits) }
