package inverted

import (
	"math/bits"
	"sync"
)

// A gap is coded by its magnitude k = ⌊log2(gap + 1)⌋, in a prefix code, followed by k bits that
// select one of the 2^k gaps of that magnitude. The code depends on the scale of the block: the
// average gap, which both sides know before the first gap. Within one scale gaps are far from
// evenly spread, since n-grams occur in clusters: a Rice code takes 20 % more.
const (
	// fullScale is the highest scale with a code of its own. Above it, the lowest bits of each gap,
	// one for each further scale, are written as they are.
	fullScale   = 18
	gapCodeBits = 10 // of the longest code

	gapMagnitudes = 32 // fewer for some scales
	topMagnitude  = 20 // the highest of any scale
)

// gapLengths has the length of the code of each magnitude, for each scale, in bits. These are
// Huffman codes for the gaps counted in the Go tree, Kubernetes and Linux 6.1.
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

// gapCodes are the codes of all scales and, for each scale, the magnitude and the length of the
// code by the next gapCodeBits bits.
type gapCodes struct {
	codes  [fullScale + 1][gapMagnitudes]gapCode
	decode [fullScale + 1][1 << gapCodeBits]decodedGap
}

// decodedGap is a magnitude, with the number of bits that it and its code take together.
type decodedGap struct{ magnitude, total uint8 }

// gaps makes the codes on first use.
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

// gapScale returns the scale of a block with n gaps to code and left missing values in total: the
// number of bits of ⌊16·left/n⌋. The excess over fullScale is the number of low bits outside of the
// code.
func gapScale(left uint64, n int) (scale, low uint) {
	scale = uint(bits.Len64(16 * left / uint64(n)))
	if scale > fullScale {
		return fullScale, scale - fullScale
	}
	return scale, 0
}
