package postings

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
)

func randomBlobs(random *rand.Rand) (blobs [][]byte) {
	for range 1 + random.IntN(6) {
		size := random.IntN(20000)
		if random.IntN(4) == 0 {
			size = random.IntN(400_000)
		}
		blobs = append(blobs, randomText(random, size))
	}
	return blobs
}

func TestIteratorsAreTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m := buildModel(t, randomBlobs(random)...)
		if n, err := m.index.Ngrams(); err != nil || n != len(m.lists) || m.index.Superblocks() != m.size {
			t.Fatalf("%d n-grams, %v, %d superblocks, want %d and %d", n, err, m.index.Superblocks(), len(m.lists), m.size)
		}
		total := uint64(0)
		it := new(Iterator)
		for id, masks := range m.lists {
			l := lookup(t, m.index, id)
			if l.DF() != uint32(len(masks)) {
				t.Fatalf("df of %d is %d, want %d", id, l.DF(), len(masks))
			}
			total += uint64(len(masks))
			checkWalk(t, l.Iterator(it), masks)
			checkSeeks(t, l.Iterator(it), masks, random)
		}
		if m.index.Postings() != total {
			t.Fatalf("%d postings, want %d", m.index.Postings(), total)
		}
		for range 50 {
			id := ngram.ID(random.Uint32N(ngram.Space + 1))
			if _, ok, err := m.index.Lookup(id); err != nil || ok != (m.lists[id] != nil) {
				t.Fatalf("n-gram %d found: %v, %v", id, ok, err)
			}
		}
	})
}

func lookup(t failer, x *Index, id ngram.ID) *List {
	l, ok, err := x.Lookup(id)
	if err != nil || !ok {
		t.Fatalf("n-gram %d found: %v, %v", id, ok, err)
	}
	return &l
}

func checkWalk(t failer, it *Iterator, masks map[uint32]uint8) {
	for _, want := range list(masks) {
		got, ok := it.Next()
		mask, err := it.Mask()
		if !ok || err != nil || got != want || mask != masks[want] {
			t.Fatalf("posting %d %08b, %v, %v, want %d %08b", got, mask, ok, err, want, masks[want])
		}
	}
	for range 2 {
		if got, ok := it.Next(); ok || it.Err() != nil {
			t.Fatalf("posting %d after the end, %v", got, it.Err())
		}
	}
}

// checkSeeks seeks short and long distances, with and without reading masks.
func checkSeeks(t failer, it *Iterator, masks map[uint32]uint8, random *rand.Rand) {
	all := list(masks)
	target := uint32(0)
	for {
		target += random.Uint32N(2 + all[len(all)-1]>>random.UintN(9))
		i, _ := slices.BinarySearch(all, target)
		got, ok := it.SeekGE(target)
		if ok != (i < len(all)) || ok && got != all[i] {
			t.Fatalf("SeekGE(%d) = %d, %v in %v", target, got, ok, all)
		}
		if !ok {
			return
		}
		if random.IntN(3) == 0 {
			if mask, err := it.Mask(); err != nil || mask != masks[got] {
				t.Fatalf("mask of %d is %08b, %v, want %08b", got, mask, err, masks[got])
			}
		}
		if random.IntN(3) == 0 {
			next, ok := it.Next()
			if ok != (i+1 < len(all)) || ok && next != all[i+1] {
				t.Fatalf("Next after %d = %d, %v", got, next, ok)
			}
			if !ok {
				return
			}
			target = next
		}
		if again, ok := it.SeekGE(0); !ok || again < got {
			t.Fatalf("SeekGE(0) = %d, %v after %d", again, ok, got)
		}
	}
}

func TestSeeksInAnyDirection(t *testing.T) {
	random := newRandom(t)
	m := buildModel(t, randomText(random, 3<<20))
	it := new(Iterator)
	for id, masks := range m.lists {
		all := list(masks)
		lookup(t, m.index, id).Iterator(it)
		for range 20 {
			x := random.Uint32N(all[len(all)-1] + 1)
			i, _ := slices.BinarySearch(all, x)
			if !it.seek(x) || it.value() != all[i] {
				t.Fatalf("seek(%d) stands at %d, want %d", x, it.value(), all[i])
			}
		}
	}
}

func TestEmptyIndex(t *testing.T) {
	m := buildModel(t)
	if _, ok, err := m.index.Lookup(0); ok || err != nil {
		t.Errorf("found: %v, %v", ok, err)
	}
	c, err := m.index.Literal(ngram.LiteralWindows("abc", false))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := c.Next(); ok || c.Err() != nil || c.Cost() != 0 || c.Lists() != 0 {
		t.Errorf("candidates %v, %v, cost %d, lists %d", ok, c.Err(), c.Cost(), c.Lists())
	}
}

func TestBuilderRefusesMisuse(t *testing.T) {
	const chunkBytes = chunkEntries * entrySize
	b := NewBuilder(Config{MaxBytes: (groupCount + 1) * chunkBytes})
	one := []ngram.ID{7}
	if err := b.Add(5, one, []uint8{1}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name       string
		superblock uint32
		ids        []ngram.ID
		masks      []uint8
		want       error
	}{
		{"again", 5, one, []uint8{1}, ErrMisuse},
		{"back", 4, one, []uint8{1}, ErrMisuse},
		{"too high", MaxSuperblocks, one, []uint8{1}, ErrMisuse},
		{"no mask", 6, one, nil, ErrMisuse},
		{"empty mask", 6, one, []uint8{0}, ErrMisuse},
		{"no n-gram", 6, []ngram.ID{ngram.Space}, []uint8{1}, ErrMisuse},
		{"full", 6, make([]ngram.ID, chunkEntries), slices.Repeat([]uint8{1}, chunkEntries), ErrFull},
	}
	for _, test := range tests {
		if err := b.Add(test.superblock, test.ids, test.masks); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	if b.Postings() != 1 || b.MemoryUsed() != chunkBytes {
		t.Errorf("%d postings in %d bytes", b.Postings(), b.MemoryUsed())
	}
	if err := b.Write(format.NewWriter(&bytes.Buffer{}), ContentTags, 5); !errors.Is(err, ErrMisuse) {
		t.Errorf("fewer superblocks than added: %v", err)
	}
}

func TestBuildingIsDeterministic(t *testing.T) {
	random := newRandom(t)
	blobs := randomBlobs(random)
	if a, b := buildModel(t, blobs...), buildModel(t, blobs...); !bytes.Equal(a.file, b.file) {
		t.Error("two indexes of the same blobs differ")
	}
}

func TestIterationDoesNotAllocate(t *testing.T) {
	random := newRandom(t)
	m := buildModel(t, randomText(random, 1<<20))
	it := new(Iterator)
	c, err := m.index.Literal(ngram.LiteralWindows("return", false))
	if err != nil {
		t.Fatal(err)
	}
	ids := []ngram.ID{0, c.anchor.ID}
	fresh := *c
	followers := slices.Clone(c.followers)
	n := testing.AllocsPerRun(100, func() {
		for _, id := range ids {
			if l, ok, _ := m.index.Lookup(id); ok {
				l.Iterator(it)
				for _, ok := it.Next(); ok; _, ok = it.Next() {
					_, _ = it.Mask()
				}
			}
		}
		*c = fresh
		copy(c.followers, followers)
		for _, _, ok := c.Next(); ok; _, _, ok = c.Next() {
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
