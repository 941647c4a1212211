package postings

import (
	"math/bits"
	"sync"
)

// Gaps are coded by their magnitude k = ⌊log2(gap + 1)⌋, in a prefix code, and then by
// k bits that say which of the 2^k gaps of that magnitude it is. The code depends on the
// scale of the block: how much of it is left out for each value, which both sides know
// before the first gap. Within one scale gaps are far from evenly spread, since an
// n-gram comes in bouts: a Rice code takes 20 % more.
const (
	// fullScale is the highest scale with a code of its own. Above it the lowest bits
	// of each gap, one for each scale more, are written as they are.
	fullScale   = 18
	gapCodeBits = 10 // of the longest code

	gapMagnitudes = 32 // or fewer, depending on the scale
	topMagnitude  = 20 // the highest of any scale
)

// gapLengths has the bits of the code of each magnitude, for each scale. They are
// Huffman's for the gaps counted in the Go tree, Kubernetes and Linux 6.1.
var gapLengths = [fullScale + 1][]uint8{
	{1, 2, 3, 3},
	{1, 2, 3, 4, 4},
	{1, 2, 3, 4, 5, 5},
	{1, 2, 3, 4, 5, 6, 6},
	{1, 2, 3, 4, 5, 6, 6},
	{1, 2, 3, 4, 5, 6, 7, 7},
	{1, 2, 3, 4, 5, 6, 7, 8, 8},
	{1, 2, 3, 4, 5, 6, 7, 8, 9, 9},
	{2, 2, 3, 3, 3, 4, 5, 6, 7, 8, 8},
	{2, 3, 3, 3, 3, 3, 4, 5, 6, 7, 8, 8},
	{2, 3, 3, 3, 3, 3, 4, 5, 6, 7, 8, 9, 9},
	{2, 3, 3, 3, 3, 4, 4, 4, 5, 6, 7, 8, 9, 9},
	{2, 3, 3, 4, 3, 4, 4, 4, 4, 5, 6, 7, 8, 9, 9},
	{2, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5, 6, 7, 8, 9, 9},
	{3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 6, 7, 8, 8},
	{3, 4, 4, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 6, 7, 8, 8},
	{3, 4, 4, 4, 4, 5, 5, 4, 4, 5, 4, 3, 3, 4, 6, 7, 9, 9, 8},
	{4, 5, 5, 5, 5, 6, 4, 5, 5, 5, 4, 3, 2, 3, 4, 7, 9, 9, 9, 9},
	{5, 6, 6, 6, 6, 6, 5, 5, 6, 6, 5, 3, 2, 2, 3, 7, 9, 9, 10, 10, 9},
}

// gapCode is the code of one magnitude.
type gapCode struct {
	bits   uint16
	length uint8
}

// gapCodes are the codes of all scales, and for each scale, by the next gapCodeBits bits,
// the magnitude and the length of its code.
type gapCodes struct {
	codes  [fullScale + 1][gapMagnitudes]gapCode
	decode [fullScale + 1][1 << gapCodeBits]decodedGap
}

// decodedGap is a magnitude with the bits that its code and it take together.
type decodedGap struct{ magnitude, total uint8 }

// gaps makes the codes at first use.
var gaps = sync.OnceValue(func() *gapCodes {
	t := &gapCodes{}
	for scale, lengths := range gapLengths {
		codes := canonicalCodes(lengths, gapCodeBits)
		for k, length := range lengths {
			t.codes[scale][k] = gapCode{codes[k], length}
			for window := uint(codes[k]); window < 1<<gapCodeBits; window += 1 << length {
				t.decode[scale][window] = decodedGap{uint8(k), length + uint8(k)}
			}
		}
	}
	return t
})

// gapScale returns the scale of a block with n gaps to code and the number of values left
// out in all: how many bits ⌊16·left/n⌋ has. What is above fullScale is the number of
// low bits that stand beside the code.
func gapScale(left uint64, n int) (scale, low uint) {
	scale = uint(bits.Len64(16 * left / uint64(n)))
	if scale > fullScale {
		return fullScale, scale - fullScale
	}
	return scale, 0
}
