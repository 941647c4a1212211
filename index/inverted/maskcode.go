package inverted

import (
	"math/bits"
	"sync"
)

const (
	maskClasses   = 8
	maskClassBits = 3
	maskCodeBits  = 11 // of the longest code
	maskBlocks    = 8  // bits of a mask

	// maskWeightBits is the logarithm of the weight of a mask with one inner bit.
	maskWeightBits = 20
)

// classLimits has the most bits in 32 masks for each class except the last. The first class is for
// blocks in which each mask has one bit.
var classLimits = [maskClasses - 1]int{32, 38, 48, 60, 80, 112, 160}

// classFactors say how likely masks are in each class, in 64ths. Each bit after the first one, each
// run of bits after the first one, and a bit in the superblock's first or last block multiply the
// likelihood of a mask. They are fitted to the Go tree, Kubernetes and Linux 6.1; codes from the
// masks' own counts would be 1 % shorter.
var classFactors = [maskClasses]struct{ bit, run, edge uint64 }{
	{0, 0, 128}, {4, 19, 108}, {11, 23, 76}, {19, 23, 76}, {32, 16, 91}, {45, 19, 91}, {64, 13, 152}, {128, 8, 181},
}

// maskWeight returns the weight of a mask in a class, in a superblock with that many blocks in
// which windows start.
func maskWeight(class int, mask uint8, blocks int) uint64 {
	factors := &classFactors[class]
	weight := uint64(1) << maskWeightBits
	multiply := func(times int, factor uint64) {
		for range times {
			weight = weight * factor / 64
		}
	}
	multiply(bits.OnesCount8(mask)-1, factors.bit)
	multiply(bits.OnesCount8(mask&^(mask<<1))-1, factors.run)
	multiply(int(mask&1), factors.edge)
	multiply(int(mask>>(blocks-1)), factors.edge)
	return weight + 1
}

// maskCodes has the codes of masks by class, by blocks of the superblock minus 1, and by mask: the
// code, above four bits with its length. It also has, by the next maskCodeBits bits, the mask,
// above the length of its code.
type maskCodes struct {
	codes  [maskClasses][maskBlocks][1 << maskBlocks]uint16
	decode [maskClasses][maskBlocks][1 << maskCodeBits]uint16
}

const codeLengthBits = 4

// masks makes the codes on first use.
var masks = sync.OnceValue(func() *maskCodes {
	t := &maskCodes{}
	for class := range maskClasses {
		for blocks := 1; blocks <= maskBlocks; blocks++ {
			t.build(class, blocks)
		}
	}
	return t
})

func (t *maskCodes) build(class, blocks int) {
	weights := make([]uint64, 1<<blocks-1)
	for i := range weights {
		weights[i] = maskWeight(class, uint8(i+1), blocks)
	}
	lengths := codeLengths(weights, maskCodeBits)
	for i, code := range canonicalCodes(lengths, maskCodeBits) {
		length := lengths[i]
		t.codes[class][blocks-1][i+1] = code<<codeLengthBits | uint16(length)
		for window := uint(code); window < 1<<maskCodeBits; window += 1 << length {
			t.decode[class][blocks-1][window] = uint16(i+1)<<codeLengthBits | uint16(length)
		}
	}
}

func maskClass(masks []uint8) int {
	ones := 0
	for _, m := range masks {
		ones += bits.OnesCount8(m)
	}
	for class, limit := range classLimits {
		if ones*32 <= limit*len(masks) {
			return class
		}
	}
	return maskClasses - 1
}
