package postings

import (
	"cmp"
	"slices"
)

// maxCodeBits bounds the length of a mask's code.
const maxCodeBits = 12

// codeLengths returns the lengths of a Huffman code for the symbols that occur, at
// most maxCodeBits each and 1 for a lone symbol. When the best code is too long,
// the counts are evened out until it is not.
func codeLengths(counts *[256]uint64) (lengths [256]uint8) {
	weights := *counts
	for {
		if fits := huffman(&weights, &lengths); fits {
			return lengths
		}
		for symbol, weight := range &weights {
			if weight > 0 {
				weights[symbol] = 1 + weight/2
			}
		}
	}
}

// huffman sets the lengths of the best code, or reports that one is too long.
func huffman(weights *[256]uint64, lengths *[256]uint8) (fits bool) {
	clear(lengths[:])
	var symbols []int
	for symbol, weight := range weights {
		if weight > 0 {
			symbols = append(symbols, symbol)
		}
	}
	if len(symbols) < 2 {
		for _, symbol := range symbols {
			lengths[symbol] = 1
		}
		return true
	}
	slices.SortStableFunc(symbols, func(a, b int) int { return cmp.Compare(weights[a], weights[b]) })
	depth := huffmanDepths(symbols, weights)
	for i, symbol := range symbols {
		if depth[i] > maxCodeBits {
			return false
		}
		lengths[symbol] = uint8(depth[i])
	}
	return true
}

// huffmanDepths joins the two lightest nodes again and again: the leaves are in
// order of weight, and so are the nodes made. It returns the depth of each leaf.
func huffmanDepths(leaves []int, weights *[256]uint64) []int {
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

// canonical is the order in which a canonical code numbers symbols: by length,
// then by value.
func canonical(lengths *[256]uint8) (symbols []byte, perLength [maxCodeBits + 1]int) {
	for length := uint8(1); length <= maxCodeBits; length++ {
		for symbol, l := range lengths {
			if l == length {
				symbols = append(symbols, byte(symbol))
				perLength[length]++
			}
		}
	}
	return symbols, perLength
}
