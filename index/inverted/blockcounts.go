package inverted

import "slices"

// blockCounts has, for each superblock, the number of its blocks in which terms start, in four bits
// each, the first in the lower half of a byte.
type blockCounts []byte

func appendBlockCounts(dst []byte, blocks []uint8) []byte {
	for pair := range slices.Chunk(blocks, 2) {
		both := pair[0]
		if len(pair) > 1 {
			both |= pair[1] << 4
		}
		dst = append(dst, both)
	}
	return dst
}

// blockCountsSize returns the bytes that the counts of that many superblocks take.
func blockCountsSize(superblocks uint32) uint64 { return (uint64(superblocks) + 1) / 2 }

// at returns the count of a superblock of the index.
func (c blockCounts) at(superblock uint32) uint8 {
	return c[superblock/2] >> (superblock % 2 * 4) & 15
}
