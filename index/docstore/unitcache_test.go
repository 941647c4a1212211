package docstore

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
)

// inOneSet are keys of units that share a set of the cache.
func inOneSet(n int) (keys []cacheKey) {
	text := texts.Add(1)
	for unit := uint32(0); len(keys) < n; unit++ {
		if k := (cacheKey{text, unit}); k.set() == (cacheKey{text, 0}).set() {
			keys = append(keys, k)
		}
	}
	return keys
}

// TestCacheSet has several goroutines keep parts of more units than a set has room for: what it has is never wrong.
func TestCacheSet(t *testing.T) {
	keys := inOneSet(3 * cacheWays)
	unitOf := func(k cacheKey) []byte {
		rng := rand.New(rand.NewPCG(uint64(k.unit), 1))
		unit := make([]byte, SuperblockSize)
		for i := range unit {
			unit[i] = byte(rng.Uint32())
		}
		return unit
	}
	units := make([][]byte, len(keys))
	for i, k := range keys {
		units[i] = unitOf(k)
	}
	var group sync.WaitGroup
	hits := make([]int, 4)
	for g := range hits {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 2))
			for range 20_000 {
				i, to := rng.IntN(len(keys)), 1+rng.IntN(SuperblockSize)
				if rng.IntN(2) == 0 {
					keys[i].keep(units[i][:to])
					continue
				}
				from := rng.IntN(to)
				got, ok := keys[i].load([]byte("before "), from, to)
				want := "before "
				if ok {
					hits[g]++
					want += string(units[i][from:to])
				}
				if string(got) != want {
					t.Errorf("unit %d, bytes %d to %d: wrong, found %v", i, from, to, ok)
					return
				}
			}
		})
	}
	group.Wait()
	if hits[0] < 100 {
		t.Errorf("only %d of some 10,000 loads found a unit", hits[0])
	}
}

// TestWhatIsUsedStaysInTheCache has a unit read between others that come once each.
func TestWhatIsUsedStaysInTheCache(t *testing.T) {
	keys := inOneSet(100)
	keys[0].keep([]byte("used"))
	for i, k := range keys[1:] {
		k.keep([]byte("once"))
		if _, ok := keys[0].load(nil, 0, 4); !ok {
			t.Fatalf("gone after %d others", i+1)
		}
		if _, ok := k.load(nil, 0, 5); ok {
			t.Fatal("more than was kept")
		}
	}
}

// TestReadersShareTheCache reads units of several dictionaries again: another reader has them from the cache, as far as
// one reader adds them, and a reader of the same bytes opened anew has not.
func TestReadersShareTheCache(t *testing.T) {
	blob := bytes.Repeat([]byte("some text of many units; "), 3*unitsPerDictionary*SuperblockSize/25)
	docs := []Document{{Path: []byte("a"), Branches: []uint32{0}}}
	data := (&model{repos: []modelRepo{{Repo{Name: "r", Branches: make([]Branch, 1)}, docs}}, blobs: [][]byte{blob}}).write(t)
	c, _, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	anew, _, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	cached := func(c *Content, u uint32) bool {
		t.Helper()
		r, off := c.NewReader(), u*SuperblockSize+100
		got, err := r.Append(nil, 0, off, 50)
		if err != nil || !bytes.Equal(got, blob[off:][:50]) {
			t.Fatalf("unit %d: %q, want %q, %v", u, got, blob[off:][:50], err)
		}
		if r.UnitsDecoded != 1 || r.BytesDecoded != SuperblockSize {
			t.Errorf("unit %d: counted %d units, %d bytes", u, r.UnitsDecoded, r.BytesDecoded)
		}
		return r.unit == noUnit
	}
	for _, u := range []uint32{0, 5, unitsPerDictionary, 2*unitsPerDictionary + 7} {
		if first, second, other := cached(c, u), cached(c, u), cached(anew, u); first || !second || other {
			t.Errorf("unit %d from the cache: %v, then %v; opened anew: %v", u, first, second, other)
		}
	}
	r := anew.NewReader()
	for u := range uint32(mostKept + 10) {
		if _, err := r.Append(nil, 0, (2*unitsPerDictionary-u)*SuperblockSize, SuperblockSize); err != nil {
			t.Fatal(err)
		}
	}
	if before, after := cached(anew, 2*unitsPerDictionary-mostKept+1), cached(anew, 2*unitsPerDictionary-mostKept); !before || after {
		t.Errorf("of %d units the last one that may be kept is in the cache: %v, the next one: %v", mostKept+10, before, after)
	}
}
