package inverted

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/format"
)

// randomWords returns lists of random words: with one posting, with some, and with many that are
// far apart or successive.
func randomWords(random *rand.Rand, words int, superblocks uint32) (lists []run) {
	for range words {
		var l run
		step := 1 + random.Uint32N(1+random.Uint32N(superblocks/2))
		for s := random.Uint32N(superblocks); s < superblocks; s += 1 + random.Uint32N(step) {
			l.superblocks = append(l.superblocks, s)
			l.masks = append(l.masks, uint8(1+random.IntN(255)))
			l.counts = append(l.counts, uint16(1+random.IntN(1+random.IntN(MaxCount))))
			l.defined = append(l.defined, len(lists)%2 == 1 && random.IntN(100) == 0)
		}
		lists = append(lists, l)
	}
	return lists
}

// writeWords returns the sections of lists: lists and table.
func writeWords(t failer, lists []run, superblocks uint32) (sections [2][]byte) {
	t.Helper()
	blocks := make([]uint8, superblocks)
	for _, l := range lists {
		for i, s := range l.superblocks {
			for blocks[s] < 8 && l.masks[i]>>blocks[s] != 0 {
				blocks[s]++
			}
		}
	}
	var file bytes.Buffer
	w := format.NewWriter(&file)
	writer := newWriter(wordTags, blocks, inMemory)
	for _, l := range lists {
		if err := writer.append(&l); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(writer.write(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("sound", file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for i, tag := range []format.Tag{format.TagWordPostings, format.TagWordTable} {
		section, _ := f.Section(tag)
		if sections[i], err = section.All(); err != nil {
			t.Fatal(err)
		}
		sections[i] = bytes.Clone(sections[i])
	}
	return sections
}

// openWords opens such sections, with correct checksums.
func openWords(t failer, sections [2][]byte) (*Index, error) {
	t.Helper()
	var file bytes.Buffer
	w := format.NewWriter(&file)
	for i, tag := range []format.Tag{format.TagWordPostings, format.TagWordTable} {
		if err := w.WriteSection(tag, format.Required, sections[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("hostile", file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return Open(f, wordTags)
}

// readWords reads as much of all lists as it can, and checks what must hold even for hostile bytes.
// It returns the first error.
func readWords(t failer, x *Index) (first error) {
	t.Helper()
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	var it Iterator
	for word := range min(x.Terms(), 200) {
		list, err := x.list(word)
		if err != nil {
			keep(err)
			continue
		}
		it.Reset(list)
		for superblocks, counts := it.Block(); len(superblocks) > 0; superblocks, counts = it.Block() {
			if superblocks[len(superblocks)-1] >= x.Superblocks() || len(counts) != len(superblocks) || slices.Contains(counts, 0) {
				t.Fatalf("superblocks %v of %d, counts %v", superblocks, x.Superblocks(), counts)
			}
		}
		keep(it.Err())
		keep(walkWords(t, x, &it, list))
		for target := uint32(0); target < 1<<30; target = target*2 + 1 {
			it.Reset(list)
			if it.SeekGE(target) && (it.Superblock() < target || it.Superblock() > list.last) {
				t.Fatalf("SeekGE(%d) stands at %d of a list up to %d", target, it.Superblock(), list.last)
			}
			keep(it.Err())
		}
	}
	return first
}

// walkWords reads one list posting by posting, and block by block.
func walkWords(t failer, x *Index, it *Iterator, list List) error {
	last, n := int64(-1), uint32(0)
	var counts []uint16
	for it.Reset(list); it.Next(); n++ {
		s := it.Superblock()
		mask := it.Mask()
		if int64(s) <= last || s >= x.Superblocks() || it.Count() == 0 || mask == 0 && it.Err() == nil {
			t.Fatalf("superblock %d of %d after %d: %d times in %08b", s, x.Superblocks(), last, it.Count(), mask)
		}
		last = int64(s)
		counts = append(counts, it.Count())
	}
	if it.Err() != nil {
		return it.Err()
	}
	if n != list.DF() || last != int64(list.last) {
		t.Fatalf("%d postings up to %d, not %d up to %d", n, last, list.DF(), list.last)
	}
	it.Reset(list)
	for superblocks, block := it.Block(); len(superblocks) > 0; superblocks, block = it.Block() {
		if !slices.Equal(block, counts[:len(block)]) {
			t.Fatalf("counts of a block are %v, not %v", block, counts[:len(block)])
		}
		counts = counts[len(block):]
	}
	if it.Err() != nil || len(counts) > 0 {
		t.Fatalf("%d counts are in no block: %v", len(counts), it.Err())
	}
	return nil
}

// TestEveryFlippedByteOfWords changes each byte of some lists in turn, corrects the checksums, and
// reads all lists.
func TestEveryFlippedByteOfWords(t *testing.T) {
	random := newRandom(t)
	sections := writeWords(t, randomWords(random, 40, 700), 700)
	flipEach(t, random, sections, func() error {
		x, err := openWords(t, sections)
		if err != nil {
			return err
		}
		return readWords(t, x)
	})
}

// TestCountsAreBounded: a word that starts more often than MaxCount in a superblock is corrupt.
func TestCountsAreBounded(t *testing.T) {
	for count, sound := range map[uint16]bool{MaxCount - 1: true, MaxCount: true, MaxCount + 1: false, 2*MaxCount - 1: false, 2 * MaxCount: false} {
		x, err := openWords(t, writeWords(t, []run{{[]uint32{0, 2, 3}, []uint8{1, 6, 1}, []uint16{1, count, 2}, []bool{false, true, false}}}, 4))
		if err != nil {
			t.Fatal(err)
		}
		if err := readWords(t, x); (err == nil) != sound {
			t.Errorf("%d times in a superblock: %v", count, err)
		} else {
			checkCorrupt(t, err)
		}
	}
}

// TestDefinitions reads back which postings are definitions, posting by posting and in blocks.
func TestDefinitions(t *testing.T) {
	lists := randomWords(newRandom(t), 300, 2000)
	x, err := openWords(t, writeWords(t, lists, 2000))
	if err != nil {
		t.Fatal(err)
	}
	var it Iterator
	for word, want := range lists {
		list, err := x.list(uint32(word))
		if err != nil {
			t.Fatal(err)
		}
		var got []bool
		for it.Reset(list); it.Next(); {
			got = append(got, it.Defined())
		}
		if !slices.Equal(got, want.defined) {
			t.Fatalf("word %d is defined in %v, want %v (%v)", word, got, want.defined, it.Err())
		}
		got = got[:0]
		it.Reset(list)
		for s, _ := it.Block(); len(s) > 0; s, _ = it.Block() {
			for i := range s {
				got = append(got, it.DefinedAt(i))
			}
		}
		if !slices.Equal(got, want.defined) {
			t.Fatalf("word %d is defined in %v, want %v (%v)", word, got, want.defined, it.Err())
		}
	}
}

// FuzzWords reads hostile lists and tables with correct checksums.
func FuzzWords(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []uint32{4, 300, 2000} {
		s := writeWords(f, randomWords(random, 3, size), size)
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, lists, table []byte) {
		x, err := openWords(t, [2][]byte{lists, table})
		if err == nil {
			err = readWords(t, x)
		}
		checkCorrupt(t, err)
	})
}

// FuzzListOfWord writes a list that the bytes describe and reads it, as a whole and by seeks.
func FuzzListOfWord(f *testing.F) {
	f.Add([]byte{1, 1, 1})
	f.Add(bytes.Repeat([]byte{0, 0x81, 7, 200, 255, 40}, 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		var l run
		next := uint32(0)
		for chunk := range slices.Chunk(data, 3) {
			if len(chunk) < 3 || next > 1<<20 {
				break
			}
			next += uint32(chunk[0]) * uint32(chunk[0]) / 8
			l.superblocks = append(l.superblocks, next)
			l.masks = append(l.masks, max(chunk[1], 1))
			l.counts = append(l.counts, 1+uint16(chunk[2])*8)
			l.defined = append(l.defined, chunk[0]%5 == 4)
			next++
		}
		if len(l.superblocks) == 0 {
			return
		}
		x, err := openWords(t, writeWords(t, []run{l}, next))
		if err != nil {
			t.Fatal(err)
		}
		if err := readWords(t, x); err != nil {
			t.Fatal(err)
		}
		list, err := x.list(0)
		if err != nil {
			t.Fatal(err)
		}
		var it Iterator
		it.Reset(list)
		for i := 0; i < len(l.superblocks); i += 1 + int(l.counts[i])/8%5 {
			if !it.SeekGE(l.superblocks[i]) || it.Superblock() != l.superblocks[i] || it.Count() != l.counts[i] || it.Mask() != l.masks[i] || it.Defined() != l.defined[i] {
				t.Fatalf("posting %d is %d: %d times in %08b, defined %v (%v)", i, it.Superblock(), it.Count(), it.Mask(), it.Defined(), it.Err())
			}
		}
	})
}
