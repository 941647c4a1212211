package inverted

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/format"
)

// drawSuperblocks draws an ascending list with dense stretches, runs and wide gaps.
func drawSuperblocks(t *rapid.T, superblocks uint64) (list []uint32) {
	next := uint64(rapid.SampledFrom([]uint32{0, 0, 1, 5000, 1 << 30}).Draw(t, "first"))
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for range rapid.IntRange(1, 5).Draw(t, "stretches") {
		spread := rapid.SampledFrom([]uint64{1, 1, 2, 3, 20, 1000, 1 << 20}).Draw(t, "spread")
		jump := rapid.SampledFrom([]uint64{0, 0, 0, 1 << 27}).Draw(t, "jump")
		next += jump
		for range rapid.IntRange(1, 300).Draw(t, "n") {
			next += random.Uint64N(spread)
			if next >= superblocks {
				return list
			}
			list = append(list, uint32(next))
			next++
		}
	}
	return list
}

// openList opens a list of appendList, or another one.
func openList(t failer, data []byte, superblocks uint32) (l List, err error) {
	t.Helper()
	file, err := format.NewFile("hostile", rebuild(t, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	lists, _ := file.Section(format.TagPostings)
	l = List{index: &Index{lists: lists, superblocks: superblocks}, blockCounts: bytes.Repeat([]byte{0x88}, int(superblocks+1)/2)}
	err = l.readHead(data, superblocks)
	return l, err
}

// decodeAll reads the superblocks of a list, and its masks.
func decodeAll(l List) (all []uint32, err error) {
	var it Iterator
	it.Reset(l)
	for superblocks, _ := it.Block(); len(superblocks) > 0; superblocks, _ = it.Block() {
		if _, err := it.Masks(); err != nil {
			return nil, err
		}
		all = append(all, superblocks...)
	}
	return all, it.Err()
}

// appendList encodes the list of an n-gram. The index has that many superblocks, with terms in all their blocks.
func appendList(list []uint32, superblocks uint32) []byte {
	e := listEncoder{blocks: bytes.Repeat([]byte{8}, int(superblocks))}
	e.append(&run{superblocks: list, masks: bytes.Repeat([]byte{1}, len(list))})
	return e.lists.bytes()
}

func TestListRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawSuperblocks(t, 1<<20)
		if len(want) == 0 {
			t.Skip("nothing drawn")
		}
		last := want[len(want)-1]
		data := appendList(want, last+1)
		l, err := openList(t, data, last+1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeAll(l)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("decoded %v, %v, want %v", got, err, want)
		}
		if cut, err := openList(t, data[:len(data)-1], last+1); err == nil {
			if _, err := decodeAll(cut); err == nil {
				t.Fatal("a list decodes without its last byte")
			}
		}
	})
}

// A list that claims superblocks beyond its index is invalid.
func TestListBeyondTheIndex(t *testing.T) {
	data := appendList([]uint32{3, 900}, 1024)
	if _, err := openList(t, data, 901); err != nil {
		t.Error(err)
	}
	if _, err := openList(t, data, 900); err == nil {
		t.Error("superblock 900 of 900 is accepted")
	}
}

// Both codings decode what they encoded, whether chosen or not, and take the
// predicted size. The smaller one is chosen.
func TestEveryCoding(t *testing.T) {
	used := map[uint64]int{}
	rapid.Check(t, func(t *rapid.T) {
		values := drawSuperblocks(t, MaxSuperblocks)
		values = values[:min(len(values), blockSize)]
		n := len(values) - 1
		if n < 1 {
			t.Skip("too short")
		}
		first := uint64(rapid.Uint32Range(0, values[0]).Draw(t, "first"))
		var w bitWriter
		w.room(blockSize * maxGapBits)
		check := func(what string, decode func(*bitReader, []uint32) error) {
			got := make([]uint32, len(values))
			got[n] = values[n]
			r := bitReader{data: w.bytes()}
			if err := decode(&r, got); err != nil || !slices.Equal(got, values) || int(r.pos) != w.bitLen() {
				t.Fatalf("%s: %v, %v in %d bits of %d, want %v", what, got, err, r.pos, w.bitLen(), values)
			}
		}
		w.superblocks(first, values)
		chosen := w.bitLen()
		check("block", func(r *bitReader, got []uint32) error { return r.superblocks(got, first, values[n]) })
		left := uint64(values[n]) - first - uint64(n)
		if left == 0 {
			if chosen > 0 {
				t.Fatalf("%d successive superblocks take %d bits", n+1, chosen)
			}
			return
		}
		used[packedAt(w.bytes(), 0, 0, 1)]++
		w.reset()
		scale, low := gapScale(left, n)
		w.gaps(&gaps().codes[scale], low, uint32(first), values[:n])
		if w.bitLen() > n*maxGapBits || chosen > 1+w.bitLen() {
			t.Fatalf("%d gaps took %d bits, %d in the coding that was chosen", n, w.bitLen(), chosen)
		}
		check("gaps", func(r *bitReader, got []uint32) error { return r.gaps(got[:n], first, values[n]) })
		w.reset()
		for v := range runs(first, values[:n]) {
			w.gamma(v)
		}
		check("runs", func(r *bitReader, got []uint32) error { return r.runs(got[:n], first, values[n]) })
	})
	for _, code := range []uint64{codingGaps, codingRuns} {
		if used[code] == 0 {
			t.Errorf("coding %d was never chosen: %v", code, used)
		}
	}
}

// Every gap that a block of a scale may have has a code, up to the largest
// index.
func TestEveryGapHasACode(t *testing.T) {
	for n := 1; n < blockSize; n++ {
		for shift := range 32 {
			for _, left := range []uint64{1 << shift, 1<<shift | 1<<shift>>1, 2<<shift - 1} {
				if left+uint64(n) >= MaxSuperblocks {
					continue
				}
				scale, low := gapScale(left, n)
				if k := bits.Len64(left>>low+1) - 1; k >= len(gapLengths[scale]) {
					t.Fatalf("a gap of %d among %d values, at scale %d, has magnitude %d", left, n, scale, k)
				}
			}
		}
	}
}

// Prefix codes must be complete, so that every sequence of bits decodes.
func TestCodesAreComplete(t *testing.T) {
	for scale, lengths := range gapLengths {
		checkKraft(t, lengths, gapCodeBits)
		if top := len(lengths) - 1; top > topMagnitude {
			t.Errorf("scale %d goes up to magnitude %d, not %d", scale, top, topMagnitude)
		}
		for window, code := range gaps().decode[scale] {
			if code.total == 0 {
				t.Errorf("scale %d has no code for %010b", scale, window)
			}
		}
	}
}

func checkKraft(t failer, lengths []uint8, limit uint) {
	t.Helper()
	kraft := 0
	for _, length := range lengths {
		if uint(length) > limit {
			t.Fatalf("a code of %d bits", length)
		}
		kraft += 1 << (limit - uint(length))
	}
	if kraft != 1<<limit {
		t.Fatalf("Kraft sum %d of %d", kraft, 1<<limit)
	}
}

// FuzzList opens hostile bytes: whatever decodes must be a valid list.
func FuzzList(f *testing.F) {
	const superblocks = 1 << 13
	long := make([]uint32, 700)
	for i := range long {
		long[i] = uint32(i * i % 7000)
	}
	slices.Sort(long)
	long = slices.Compact(long)
	for _, list := range [][]uint32{{0}, {7}, {1, 5, 6, 900}, long} {
		f.Add(appendList(list, superblocks))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := openList(t, data, superblocks)
		if err != nil {
			return
		}
		var it Iterator
		it.Reset(l)
		last := int64(-1)
		for it.Next() {
			if s := int64(it.Superblock()); s <= last || s >= superblocks {
				t.Fatalf("superblock %d of %d after %d", s, superblocks, last)
			}
			last = int64(it.Superblock())
			it.Mask()
		}
		if checkCorrupt(t, it.Err()); it.Err() == nil && last != int64(l.last) {
			t.Fatalf("a list up to %d ends at %d", l.last, last)
		}
	})
}
