package docstore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
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
		return r.unit == cacheKey{}
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

// TestUnitOfTwoSizes: lists of a hostile shard can say two sizes of a unit.
func TestUnitOfTwoSizes(t *testing.T) {
	secret := bytes.Repeat([]byte("secret of another shard "), 171)[:SuperblockSize]
	other := contentOf(t, secret)
	c := contentOf(t, []byte("0123456789"))
	r := other.NewReader()
	if _, err := r.Append(nil, 0, 0, SuperblockSize); err != nil {
		t.Fatal(err)
	}
	r.Reset(c)
	if got, err := r.append(nil, &c.units, 0, 10, 0, 10); err != nil || string(got) != "0123456789" {
		t.Fatalf("%q, %v", got, err)
	}
	for range 2 {
		if got, err := r.append(nil, &c.units, 0, SuperblockSize, 0, SuperblockSize); err == nil {
			t.Errorf("a unit of 10 bytes has %d: %.60q", len(got), got)
		}
	}
}

func contentOf(t *testing.T, blobs ...[]byte) *Content {
	t.Helper()
	docs := []Document{}
	for i := range blobs {
		docs = append(docs, Document{Path: fmt.Append(nil, "a", i), Branches: []uint32{0}, Blob: uint32(i)})
	}
	data := (&model{repos: []modelRepo{{Repo{Name: "r", Branches: make([]Branch, 1)}, docs}}, blobs: blobs}).write(t)
	c, _, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNamesAreKept: paths of one shard, read by many searches one after the other.
func TestNamesAreKept(t *testing.T) {
	var docs []Document
	pad := bytes.Repeat([]byte("x"), 2000)
	for i := range 4000 {
		docs = append(docs, Document{Path: append(fmt.Appendf(nil, "%05d", i), pad...), Branches: []uint32{0}, Blob: uint32(i)})
	}
	blobs := make([][]byte, len(docs))
	data := (&model{repos: []modelRepo{{Repo{Name: "r", Branches: make([]Branch, 1)}, docs}}, blobs: blobs}).write(t)
	_, d, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that all have the same buffer
	buf := make([]byte, 0, 4096)
	for doc := range d.Len() { // a search that reads all names
		if _, err := d.AppendPath(buf, doc); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 { // searches that read a few
		for _, doc := range []uint32{3900, 3990} {
			if _, err := d.AppendPath(buf, doc); err != nil {
				t.Fatal(err)
			}
		}
	}
	start, _, _ := d.PathRange(3900)
	if _, ok := (cacheKey{d.names.text, uint32(start / SuperblockSize)}).load(nil, 0, 1); !ok {
		t.Error("names that a hundred searches read are not in the cache")
	}
}

// TestWhoReadsOnceAddsNothing reads all units once, as merging and verifying do.
func TestWhoReadsOnceAddsNothing(t *testing.T) {
	c := contentOf(t, bytes.Repeat([]byte("0123456789abcdef"), SuperblockSize))
	var r Reader
	r.ResetOnce(c)
	if _, err := r.Append(nil, 0, 0, 16*SuperblockSize); err != nil {
		t.Fatal(err)
	}
	for unit := range c.Superblocks() {
		if _, found := (cacheKey{c.units.text, unit}).load(nil, 0, 1); found {
			t.Errorf("unit %d is in the cache", unit)
		}
	}
}
