package inverted

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawSuperblocks draws an ascending list below MaxSuperblocks with dense
// stretches, runs and wide gaps.
func drawSuperblocks(t *rapid.T) (list []uint32) {
	next := uint64(rapid.SampledFrom([]uint32{0, 0, 1, 5000, 1 << 30}).Draw(t, "first"))
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for range rapid.IntRange(1, 5).Draw(t, "stretches") {
		spread := rapid.SampledFrom([]uint64{1, 1, 2, 3, 20, 1000, 1 << 20}).Draw(t, "spread")
		jump := rapid.SampledFrom([]uint64{0, 0, 0, 1 << 27}).Draw(t, "jump")
		next += jump
		for range rapid.IntRange(1, 300).Draw(t, "n") {
			next += random.Uint64N(spread)
			if next >= MaxSuperblocks {
				return list
			}
			list = append(list, uint32(next))
			next++
		}
	}
	return list
}

func decodeAll(l *rawList) (all []uint32, err error) {
	var values [blockSize]uint32
	for b := range l.blocks() {
		block, err := l.decode(b, &values)
		if err != nil {
			return nil, err
		}
		all = append(all, block...)
	}
	return all, nil
}

func openRaw(data []byte, superblocks uint32) (l rawList, err error) {
	err = l.open(data, superblocks)
	return l, err
}

// appendList encodes a list of an index with that many superblocks.
func appendList(e *listEncoder, list []uint32, superblocks uint32) []byte {
	var w bitWriter
	e.append(&w, list, superblockBits(superblocks))
	return slices.Clone(w.bytes())
}

func TestListRoundTrip(t *testing.T) {
	var e listEncoder
	used := map[uint64]int{}
	rapid.Check(t, func(t *rapid.T) {
		want := drawSuperblocks(t)
		if len(want) == 0 {
			t.Skip("nothing drawn")
		}
		last := want[len(want)-1]
		data := appendList(&e, want, last+1)
		l, err := openRaw(data, last+1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeAll(&l)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("decoded %v, %v, want %v", got, err, want)
		}
		for b := range l.blocks() {
			if from, to := l.span(b); from < to {
				used[packedAt(l.data, from, 0, 1)]++
			}
		}
		if cut, err := openRaw(data[:len(data)-1], last+1); err == nil {
			if _, err := decodeAll(&cut); err == nil {
				t.Fatal("a list decodes without its last byte")
			}
		}
	})
	for _, code := range []uint64{codingGaps, codingRuns} {
		if used[code] == 0 {
			t.Errorf("coding %d was never chosen: %v", code, used)
		}
	}
}

// A list that claims superblocks beyond its index is invalid.
func TestListBeyondTheIndex(t *testing.T) {
	data := appendList(new(listEncoder), []uint32{3, 900}, 1024)
	if _, err := openRaw(data, 901); err != nil {
		t.Error(err)
	}
	if _, err := openRaw(data, 900); err == nil {
		t.Error("superblock 900 of 900 is accepted")
	}
}

// Both codings decode what they encoded, whether chosen or not, and take the
// predicted size.
func TestEveryCoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := drawSuperblocks(t)
		values = values[:min(len(values), blockSize)]
		n := len(values) - 1
		if n < 1 {
			t.Skip("too short")
		}
		first := uint64(rapid.Uint32Range(0, values[0]).Draw(t, "first"))
		left := uint64(values[n]) - first - uint64(n)
		if left == 0 {
			t.Skip("no gap")
		}
		var w bitWriter
		w.room(blockSize * maxGapBits)
		check := func(what string, decode func(*gapDecoder, *bitReader) error) {
			got := slices.Clone(values)
			clear(got[:n])
			d := gapDecoder{next: first, last: uint64(values[n]), values: got[:n]}
			r := bitReader{data: w.bytes()}
			if err := decode(&d, &r); err != nil || !slices.Equal(got, values) || int(r.pos) != w.bitLen() {
				t.Fatalf("%s: %v, %v in %d bits of %d, want %v", what, got, err, r.pos, w.bitLen(), values)
			}
			w.reset()
		}
		scale, low := gapScale(left, n)
		w.gaps(&gaps().codes[scale], low, uint32(first), values[:n])
		if w.bitLen() > n*maxGapBits {
			t.Fatalf("%d gaps took %d bits", n, w.bitLen())
		}
		check("gaps", func(d *gapDecoder, r *bitReader) error {
			d.scale()
			for range 3 {
				x := rapid.Uint64Range(0, d.last).Draw(t, "until")
				if err := d.until(r, x); err != nil {
					return err
				}
				if len(d.values) > 0 && d.next <= x {
					t.Fatalf("stands at %d, not at %d", d.next, x)
				}
			}
			return d.until(r, math.MaxUint64)
		})
		w.runs(first, values[:n])
		if w.bitLen() != runsBits(first, values[:n]) {
			t.Fatalf("runs took %d bits, foreseen %d", w.bitLen(), runsBits(first, values[:n]))
		}
		check("runs", (*gapDecoder).runs)
	})
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
	const superblocks = 1 << 20
	var e listEncoder
	long := make([]uint32, 700)
	for i := range long {
		long[i] = uint32(i * i % 7000)
	}
	slices.Sort(long)
	long = slices.Compact(long)
	for _, list := range [][]uint32{{0}, {7}, {1, 5, 6, 900}, long} {
		f.Add(appendList(&e, list, superblocks))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := openRaw(data, superblocks)
		if err != nil {
			return
		}
		var values [blockSize]uint32
		for b := range min(l.blocks(), 100) {
			block, err := l.decode(b, &values)
			if err != nil {
				return
			}
			last := int64(-1)
			for _, v := range block {
				if int64(v) <= last {
					t.Fatalf("block %d is not ascending: %v", b, block)
				}
				last = int64(v)
			}
			if last >= superblocks && b == l.blocks()-1 {
				t.Fatalf("block %d ends at %d", b, last)
			}
		}
	})
}
