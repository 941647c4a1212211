package search

import (
	"math/bits"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/ngram"
)

// around returns the superblocks that may hold a place between least and most bytes after a place
// of the tally, whose blocks must be set.
func (t *tally) around(least, most int) (first, last uint32) {
	low := bits.TrailingZeros8(t.blocks) + floorDiv(least, docstore.BlockSize)
	high := bits.Len8(t.blocks) - 1 + floorDiv(most+docstore.BlockSize-1, docstore.BlockSize)
	first = uint32(max(0, int64(t.superblock)+int64(floorDiv(low, ngram.BlocksPerSuperblock))))
	return first, uint32(max(0, int64(t.superblock)+int64(floorDiv(high, ngram.BlocksPerSuperblock))))
}

// keepNear keeps the tallies, and in them the blocks, that hold a place between least and most
// bytes before a place of others. It reuses the memory of the tallies.
func keepNear(tallies, others []tally, least, most int) []tally {
	at := blockCursor{tallies: others}
	kept := tallies[:0]
	for _, t := range tallies {
		if t.blocks &= at.around(t.superblock, least, most); t.blocks != 0 {
			kept = append(kept, t)
		}
	}
	return kept
}

// blockCursor looks at the blocks around superblocks, which ascend.
type blockCursor struct {
	tallies []tally
	next    int
}

// around returns the blocks of a superblock that have, between least and most bytes after them, a
// place in a block of the tallies.
func (c *blockCursor) around(superblock uint32, least, most int) (blocks uint8) {
	low, high := floorDiv(least, docstore.BlockSize), floorDiv(most+docstore.BlockSize-1, docstore.BlockSize)
	first := int64(superblock) + int64(floorDiv(low, ngram.BlocksPerSuperblock))
	last := int64(superblock) + int64(floorDiv(high+ngram.BlocksPerSuperblock-1, ngram.BlocksPerSuperblock))
	for c.next < len(c.tallies) && int64(c.tallies[c.next].superblock) < first {
		c.next++
	}
	for _, t := range c.tallies[c.next:] {
		if int64(t.superblock) > last {
			break
		}
		base := int(int64(t.superblock)-int64(superblock)) * ngram.BlocksPerSuperblock
		for j, mask := 0, t.blocks; mask != 0; j, mask = j+1, mask>>1 {
			if mask&1 == 1 {
				for b := max(0, base+j-high); b <= min(ngram.BlocksPerSuperblock-1, base+j-low); b++ {
					blocks |= 1 << b
				}
			}
		}
	}
	return blocks
}

func floorDiv(a, b int) int {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}
