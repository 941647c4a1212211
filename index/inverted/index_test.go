package inverted

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

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
		if n := m.index.Terms(); int(n) != len(m.lists) || m.index.Superblocks() != m.size {
			t.Fatalf("%d n-grams, %d superblocks, want %d and %d", n, m.index.Superblocks(), len(m.lists), m.size)
		}
		total := uint64(0)
		it := new(Iterator)
		for id, masks := range m.lists {
			l := lookup(t, m.index, id)
			if l.DF() != uint32(len(masks)) {
				t.Fatalf("df of %d is %d, want %d", id, l.DF(), len(masks))
			}
			total += uint64(len(masks))
			it.Reset(l)
			checkWalk(t, it, masks)
			it.Reset(l)
			checkSeeks(t, it, masks, random)
		}
		if m.index.Postings() != total {
			t.Fatalf("%d postings, want %d", m.index.Postings(), total)
		}
		for range 50 {
			id := ngram.ID(random.Uint32N(ngram.Space + 1))
			if _, ok, err := m.index.lookup(id); err != nil || ok != (m.lists[id] != nil) {
				t.Fatalf("n-gram %d found: %v, %v", id, ok, err)
			}
		}
	})
}

func lookup(t failer, x *Index, id ngram.ID) List {
	l, ok, err := x.lookup(id)
	if err != nil || !ok {
		t.Fatalf("n-gram %d found: %v, %v", id, ok, err)
	}
	return l
}

func checkWalk(t failer, it *Iterator, masks map[uint32]uint8) {
	for _, want := range list(masks) {
		if !it.Next() || it.Superblock() != want || it.Mask() != masks[want] || it.Err() != nil {
			t.Fatalf("posting %d %08b, %v, want %d %08b", it.Superblock(), it.Mask(), it.Err(), want, masks[want])
		}
	}
	for range 2 {
		if it.Next() || it.Err() != nil {
			t.Fatalf("posting %d after the end, %v", it.Superblock(), it.Err())
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
		ok := it.SeekGE(target)
		if ok != (i < len(all)) || ok && it.Superblock() != all[i] {
			t.Fatalf("SeekGE(%d) = %v in %v", target, ok, all)
		}
		if !ok {
			return
		}
		got := it.Superblock()
		if random.IntN(3) == 0 {
			if mask := it.Mask(); it.Err() != nil || mask != masks[got] {
				t.Fatalf("mask of %d is %08b, %v, want %08b", got, mask, it.Err(), masks[got])
			}
		}
		if random.IntN(3) == 0 {
			ok := it.Next()
			if ok != (i+1 < len(all)) || ok && it.Superblock() != all[i+1] {
				t.Fatalf("Next after %d = %v", got, ok)
			}
			if !ok {
				return
			}
			target = it.Superblock()
		}
		if !it.SeekGE(0) || it.Superblock() < got {
			t.Fatalf("SeekGE(0) = %d after %d", it.Superblock(), got)
		}
	}
}

func TestSeeksInAnyDirection(t *testing.T) {
	random := newRandom(t)
	m := buildModel(t, randomText(random, 3<<20))
	it := new(Iterator)
	for id, masks := range m.lists {
		all := list(masks)
		it.Reset(lookup(t, m.index, id))
		for range 20 {
			x := random.Uint32N(all[len(all)-1] + 1)
			i, _ := slices.BinarySearch(all, x)
			if !it.seek(x) || it.Superblock() != all[i] {
				t.Fatalf("seek(%d) stands at %d, want %d", x, it.Superblock(), all[i])
			}
		}
	}
}

func TestEmptyIndex(t *testing.T) {
	m := buildModel(t)
	if _, ok, err := m.index.lookup(0); ok || err != nil {
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
	b := NewNgramBuilder()
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
	}
	for _, test := range tests {
		if err := b.Add(test.superblock, test.ids, test.masks); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	if b.Postings() != 1 || b.MemoryUsed() != int64(unsafe.Sizeof(chunk[uint32]{})) {
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
			if l, ok, _ := m.index.lookup(id); ok {
				for it.Reset(l); it.Next(); {
					it.Mask()
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

// lookup returns the posting list of an n-gram, or false if the n-gram does not occur.
func (x *Index) lookup(id ngram.ID) (List, bool, error) {
	t, err := x.openedTable()
	if err != nil {
		return List{}, false, err
	}
	term, ok := t.ngrams.Find(uint64(id))
	if !ok {
		return List{}, false, nil
	}
	l, err := x.list(uint32(term))
	return l, err == nil, err
}
