package postings

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawSuperblocks draws an ascending list below MaxSuperblocks that mixes dense
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

func TestListRoundTrip(t *testing.T) {
	var e listEncoder
	used := map[coding]int{}
	rapid.Check(t, func(t *rapid.T) {
		want := drawSuperblocks(t)
		if len(want) == 0 {
			t.Skip("nothing drawn")
		}
		data := e.append(nil, want)
		l, err := openList(data, want[len(want)-1]+1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeAll(&l)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("decoded %v, %v, want %v", got, err, want)
		}
		for b := range l.blocks() {
			if from, to := l.span(b); from < to {
				used[coding(l.body[from]&7)]++
			}
		}
		if _, err := openList(data, want[len(want)-1]); err == nil {
			t.Fatal("a list beyond the index's superblocks opens")
		}
	})
	for code := range codings {
		if used[code] == 0 {
			t.Errorf("coding %d was never chosen: %v", code, used)
		}
	}
}

// Every coding decodes what it encoded, chosen or not, in the size foreseen.
func TestEveryCoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := drawSuperblocks(t)
		values = values[:min(len(values), blockSize)]
		if len(values) < 2 {
			t.Skip("too short")
		}
		first := uint64(rapid.Uint32Range(0, values[0]).Draw(t, "first"))
		var e blockEncoder
		e.measure(first, values)
		if uint64(e.n) == e.span {
			t.Skip("no gap")
		}
		width, runs, bytes := e.scan()
		k := rapid.UintRange(12, 31).Draw(t, "k")
		check := func(code coding, param uint, data []byte, size uint64) {
			got := slices.Clone(values)
			clear(got[:e.n])
			if err := decodeCoded(code, param, data, first, got); err != nil || !slices.Equal(got, values) {
				t.Fatalf("coding %d: %v, %v, want %v", code, got, err, values)
			}
			if uint64(len(data)) > size {
				t.Fatalf("coding %d took %d bytes, foreseen %d", code, len(data), size)
			}
		}
		check(codingPacked, width, appendPacked(nil, e.gaps[:e.n], width), byteLen(uint64(width)*uint64(e.n)))
		check(codingRice, k, e.appendRice(nil, k), byteLen(e.riceBits(k)))
		check(codingRuns, 0, e.appendRuns(nil), runs)
		check(codingBytes, 0, e.appendBytes(nil), bytes)
	})
}

// FuzzList opens hostile bytes: whatever decodes must be a proper list.
func FuzzList(f *testing.F) {
	var e listEncoder
	long := make([]uint32, 700)
	for i := range long {
		long[i] = uint32(i * i % 7000)
	}
	slices.Sort(long)
	long = slices.Compact(long)
	for _, list := range [][]uint32{{0}, {7}, {1, 5, 6, 900}, long} {
		f.Add(e.append(nil, list))
	}
	for code := range byte(codings) + 2 {
		f.Add([]byte{5, 200, 1, code | 2<<3, 0x55, 0x12, 0xfe, 0xff, 3, 4, 5, 6, 7})
	}
	const superblocks = 1 << 20
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := openList(data, superblocks)
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
