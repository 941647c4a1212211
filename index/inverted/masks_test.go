package inverted

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawMasks draws the superblocks of a block of postings, the block counts of all
// superblocks, and masks that fit them.
func drawMasks(t *rapid.T) (superblocks []uint32, counts, masks []uint8) {
	some := rapid.SampledFrom([]*rapid.Generator[uint8]{
		rapid.Uint8Range(1, 255), rapid.SampledFrom([]uint8{1, 2, 4, 8, 16, 32, 64, 128}), rapid.Just(uint8(255)),
		rapid.SampledFrom([]uint8{1, 3, 7, 255}),
	}).Draw(t, "kind")
	for _, mask := range rapid.SliceOfN(some, 1, 3*blockSize).Draw(t, "masks") {
		for range rapid.IntRange(0, 1).Draw(t, "without") {
			counts = append(counts, 0)
		}
		count := rapid.SampledFrom([]uint8{1, 3, 7, 8, 8, 8, 8}).Draw(t, "blocks")
		if mask &= 1<<count - 1; mask == 0 {
			mask = 1
		}
		superblocks, masks = append(superblocks, uint32(len(counts))), append(masks, mask)
		counts = append(counts, count)
	}
	return superblocks, counts, masks
}

func TestMasksRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		superblocks, counts, masks := drawMasks(t)
		e := listEncoder{blocks: counts}
		e.append(&run{superblocks: superblocks, masks: masks})
		l, err := openList(t, e.lists.bytes(), uint32(len(counts)))
		if err != nil {
			t.Fatal(err)
		}
		l.blockCounts = appendBlockCounts(nil, counts)
		var it Iterator
		it.Reset(l)
		for range 2 * len(masks) {
			i := rapid.IntRange(0, len(masks)-1).Draw(t, "posting")
			if !it.seek(superblocks[i]) || it.Superblock() != superblocks[i] || it.Mask() != masks[i] {
				t.Fatalf("mask %d is %08b, %v, want %08b", i, it.Mask(), it.Err(), masks[i])
			}
			other := rapid.IntRange(0, len(masks)-1).Draw(t, "other")
			if mask, err := it.maskOf(other/blockSize, other%blockSize); err != nil || mask != masks[other] {
				t.Fatalf("mask %d is %08b, %v, want %08b", other, mask, err, masks[other])
			}
		}
	})
}

// The masks of every superblock have a complete code in every class.
func TestMaskCodesAreComplete(t *testing.T) {
	for class := range maskClasses {
		for blocks := 1; blocks <= maskBlocks; blocks++ {
			var lengths []uint8
			for mask := 1; mask < 1<<blocks; mask++ {
				lengths = append(lengths, uint8(masks().codes[class][blocks-1][mask]%(1<<codeLengthBits)))
			}
			checkKraft(t, lengths, maskCodeBits)
		}
	}
}

func TestCodeLengthsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := make([]uint64, rapid.IntRange(1, 255).Draw(t, "symbols"))
		skew := rapid.SampledFrom([]float64{0, 0.1, 0.7, 1, 2}).Draw(t, "skew")
		for i := range weights {
			weights[i] = 1 + uint64(math.Min(math.Exp(skew*float64(i)), 1e15))
		}
		checkKraft(t, codeLengths(weights, maskCodeBits), maskCodeBits)
	})
}

// FuzzMasks reads hostile blocks.
func FuzzMasks(f *testing.F) {
	f.Add([]byte{0xff, 0xff, 0xff}, []byte{0x88, 0x80, 0x08})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, []byte{0x99, 0x12, 0x34, 0x56, 0x78})
	f.Fuzz(func(t *testing.T, data, counts []byte) {
		p := &postings{bits: bitReader{data: data}, end: uint(len(data)) * 8}
		p.n = min(2*len(counts), blockSize)
		for i := range p.n {
			p.superblocks[i] = uint32(i)
		}
		l, err := openList(t, appendList([]uint32{0}, 1), 1)
		if err != nil {
			t.Fatal(err)
		}
		l.blockCounts = counts
		for i := range p.n {
			mask, err := p.mask(&l, i)
			if err != nil {
				checkCorrupt(t, err)
				return
			}
			if count := blockCounts(counts).at(uint32(i)); mask == 0 || count > maskBlocks || int(mask)>>count != 0 {
				t.Fatalf("mask %08b in a superblock of %d blocks", mask, count)
			}
		}
	})
}
