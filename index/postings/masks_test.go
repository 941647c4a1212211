package postings

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func openMaskTables(data []byte) (tables [maskClasses]maskTable, used int, err error) {
	for class := range tables {
		var size int
		if tables[class], size, err = openMaskTable(data[used:]); err != nil {
			return tables, used, err
		}
		used += size
	}
	return tables, used, nil
}

func TestMasksRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e maskEncoder
		some := rapid.SampledFrom([]*rapid.Generator[uint8]{
			rapid.Uint8Range(1, 255), rapid.SampledFrom([]uint8{1, 2, 4, 8, 16, 32, 64, 128}), rapid.Just(uint8(255)),
			rapid.SampledFrom([]uint8{1, 3, 7, 255}),
		})
		var blocks [][]uint8
		for range rapid.IntRange(1, 6).Draw(t, "blocks") {
			masks := rapid.SliceOfN(some.Draw(t, "kind"), 1, blockSize).Draw(t, "masks")
			blocks = append(blocks, masks)
			e.count(masks)
		}
		head := e.build(nil)
		tables, used, err := openMaskTables(head)
		if err != nil || used != len(head) {
			t.Fatalf("tables of %d bytes: %d, %v", len(head), used, err)
		}
		var b maskBlock
		for _, want := range blocks {
			if err := b.reset(&tables, e.append(nil, want)); err != nil {
				t.Fatal(err)
			}
			for i, mask := range slices.Backward(want) {
				if got, err := b.at(i); err != nil || got != mask {
					t.Fatalf("mask %d is %08b, %v, want %08b", i, got, err, mask)
				}
			}
		}
	})
}

func TestCodeLengthsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var counts [256]uint64
		n := rapid.IntRange(0, 255).Draw(t, "symbols")
		skew := rapid.SampledFrom([]float64{0, 0.1, 0.7, 1, 2}).Draw(t, "skew")
		for i := range n {
			counts[1+i] = 1 + uint64(math.Min(math.Exp(skew*float64(i)), 1e15))
		}
		lengths := codeLengths(&counts)
		kraft := 0
		for symbol, length := range lengths {
			if (length > 0) != (counts[symbol] > 0) || length > maxCodeBits {
				t.Fatalf("symbol %d with count %d has a code of %d bits", symbol, counts[symbol], length)
			}
			if length > 0 {
				kraft += 1 << (maxCodeBits - length)
			}
		}
		if kraft > 1<<maxCodeBits || n > 1 && kraft != 1<<maxCodeBits {
			t.Fatalf("Kraft sum %d", kraft)
		}
	})
}

// FuzzMasks reads hostile tables and blocks.
func FuzzMasks(f *testing.F) {
	var e maskEncoder
	for class := range uint8(maskClasses) {
		e.count([]uint8{1<<class | 1, 1 << class, 0xff << class})
	}
	head := e.build(nil)
	f.Add(head, e.append(nil, []uint8{1, 3, 1}))
	f.Add(head, []byte{0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, head, block []byte) {
		tables, _, err := openMaskTables(head)
		if err != nil {
			return
		}
		var b maskBlock
		if b.reset(&tables, block) != nil {
			return
		}
		for i := range blockSize {
			if _, err := b.at(i); err != nil {
				return
			}
		}
	})
}
