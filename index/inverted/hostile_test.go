package inverted

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
)

// rebuild writes a shard with correct checksums around the given sections.
func rebuild(t failer, ngrams, lists []byte) []byte {
	t.Helper()
	var file bytes.Buffer
	w := format.NewWriter(&file)
	_ = w.WriteSection(format.TagPostings, format.Required, lists)
	_ = w.WriteSection(format.TagNgrams, format.Required, ngrams)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// sections returns the two sections of a model's index for rebuild.
func (m *model) sections(t failer) (sections [2][]byte) {
	t.Helper()
	for i, s := range []format.Section{m.index.table, m.index.lists} {
		data, err := s.All()
		if err != nil {
			t.Fatal(err)
		}
		sections[i] = bytes.Clone(data)
	}
	return sections
}

// readAll reads as much of an index as it can, and checks what must hold even for hostile bytes.
func readAll(t failer, file []byte, ids []ngram.ID) error {
	t.Helper()
	f, err := format.NewFile("hostile", file)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Open(f, ContentTags)
	if err != nil {
		return err
	}
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	it := new(Iterator)
	for _, id := range ids {
		l, ok, err := x.lookup(id)
		keep(err)
		if !ok || err != nil {
			continue
		}
		it.Reset(l)
		keep(readList(t, x, it))
	}
	for _, literal := range []string{"return", "Kelvin", "中文", "kkkk", "func Error"} {
		c, err := x.Literal(ngram.LiteralWindows(literal, true))
		keep(err)
		if err != nil {
			continue
		}
		for range 5000 {
			if _, _, ok := c.Next(); !ok {
				break
			}
		}
		keep(c.Err())
	}
	return first
}

func readList(t failer, x *Index, it *Iterator) error {
	last := int64(-1)
	for range 5000 { // a hostile list may name billions of successive superblocks
		if !it.Next() {
			break
		}
		s := it.Superblock()
		if int64(s) <= last || s >= x.Superblocks() {
			t.Fatalf("superblock %d of %d after %d", s, x.Superblocks(), last)
		}
		last = int64(s)
		if it.Mask(); it.Err() != nil {
			return it.Err()
		}
	}
	for _, target := range []uint32{1, 130, 1 << 16, 1<<31 - 1} {
		if it.SeekGE(target) && it.Superblock() < target {
			t.Fatalf("SeekGE(%d) = %d", target, it.Superblock())
		}
	}
	return it.Err()
}

func checkCorrupt(t failer, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrVersion) {
		t.Fatalf("error of another kind: %v", err)
	}
}

// TestEveryFlippedByte changes each byte of a small index in turn, corrects the checksums, and
// reads everything.
func TestEveryFlippedByte(t *testing.T) {
	random := newRandom(t)
	m := buildModel(t, randomText(random, 900), bytes.Repeat([]byte("return Kelvin "), 60_000))
	var ids []ngram.ID
	for id := range m.lists {
		ids = append(ids, id)
	}
	sections := m.sections(t)
	flipEach(t, random, sections, func() error { return readAll(t, rebuild(t, sections[0], sections[1]), ids) })
}

// flipEach changes each byte of some sections in turn, and reads them. They must be sound unchanged.
func flipEach(t *testing.T, random *rand.Rand, sections [2][]byte, read func() error) {
	t.Helper()
	if err := read(); err != nil {
		t.Fatalf("unchanged: %v", err)
	}
	failed := 0
	for _, section := range sections {
		for i := range section {
			flip := byte(1 + random.IntN(255))
			section[i] ^= flip
			err := read()
			section[i] ^= flip
			checkCorrupt(t, err)
			if err != nil {
				failed++
			}
		}
	}
	if failed == 0 {
		t.Error("no flip was noticed")
	}
}

// TestEveryFlipIsNoticed changes bytes without correcting the checksums: nothing that is read may
// be wrong.
func TestEveryFlipIsNoticed(t *testing.T) {
	m := buildModel(t, bytes.Repeat([]byte("return Kelvin 中文字符 "), 50_000))
	var ids []ngram.ID
	for id := range m.lists {
		ids = append(ids, id)
	}
	for _, s := range m.sections(t) {
		file := bytes.Clone(m.file)
		at := bytes.Index(file, s)
		for _, i := range []int{at, at + len(s)/2, at + len(s) - 1} {
			file[i] ^= 4
			if err := readAll(t, file, ids); !errors.Is(err, format.ErrCorrupt) {
				t.Errorf("flip at %d: %v", i, err)
			}
			file[i] ^= 4
		}
	}
}

// FuzzIndex reads hostile sections with correct checksums.
func FuzzIndex(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	var ids []ngram.ID
	for _, size := range []int{100, 1000} {
		m := buildModel(f, randomText(random, size), bytes.Repeat([]byte("Kelvin return"), size))
		sections := m.sections(f)
		f.Add(sections[0], sections[1])
		for id := range m.lists {
			ids = append(ids, id)
		}
	}
	f.Fuzz(func(t *testing.T, ngrams, lists []byte) {
		checkCorrupt(t, readAll(t, rebuild(t, ngrams, lists), ids))
	})
}
