package inverted

import (
	"cmp"
	"math/bits"
	"slices"
)

// codeLengths returns the lengths of a Huffman code for symbols with these weights, at most limit
// bits each. A lone symbol has a code of 0 bits. If the best code is too long, it evens out the
// weights until it is not.
func codeLengths(weights []uint64, limit uint) []uint8 {
	weights = slices.Clone(weights)
	for {
		if lengths, fits := huffman(weights, limit); fits {
			return lengths
		}
		for symbol, weight := range weights {
			weights[symbol] = 1 + weight/2
		}
	}
}

// huffman returns the lengths of the best code, or reports that one is too long.
func huffman(weights []uint64, limit uint) (lengths []uint8, fits bool) {
	symbols := make([]int, len(weights))
	for i := range symbols {
		symbols[i] = i
	}
	slices.SortStableFunc(symbols, func(a, b int) int { return cmp.Compare(weights[a], weights[b]) })
	lengths = make([]uint8, len(weights))
	for i, depth := range huffmanDepths(symbols, weights) {
		if uint(depth) > limit {
			return nil, false
		}
		lengths[symbols[i]] = uint8(depth)
	}
	return lengths, true
}

// huffmanDepths repeatedly joins the two lightest nodes. The leaves are in order of weight, and so
// are the new nodes. It returns the depth of each leaf.
func huffmanDepths(leaves []int, weights []uint64) []int {
	n := len(leaves)
	weight := make([]uint64, 0, 2*n-1)
	for _, symbol := range leaves {
		weight = append(weight, weights[symbol])
	}
	parent := make([]int, 2*n-1)
	leaf, inner := 0, n
	lightest := func() int {
		if inner == len(weight) || leaf < n && weight[leaf] <= weight[inner] {
			leaf++
			return leaf - 1
		}
		inner++
		return inner - 1
	}
	for len(weight) < cap(weight) {
		a, b := lightest(), lightest()
		parent[a], parent[b] = len(weight), len(weight)
		weight = append(weight, weight[a]+weight[b])
	}
	depth := make([]int, 2*n-1)
	for i := 2*n - 3; i >= 0; i-- {
		depth[i] = depth[parent[i]] + 1
	}
	return depth[:n]
}

// canonicalCodes returns the code of each symbol, given the lengths of all, which are at most
// limit. Codes count up in the order of length, then symbol. Their bits are reversed, so that a
// writer that writes the lowest bits first writes the highest bit of a code first.
func canonicalCodes(lengths []uint8, limit uint8) []uint16 {
	codes := make([]uint16, len(lengths))
	next := uint16(0)
	for length := uint8(1); length <= limit; length++ {
		next <<= 1
		for symbol, l := range lengths {
			if l == length {
				codes[symbol] = bits.Reverse16(next) >> (16 - length)
				next++
			}
		}
	}
	return codes
}
