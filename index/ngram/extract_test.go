package ngram

import (
	"bytes"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// extract collects what Extract emits, and checks its order and form.
func extract(t interface{ Fatalf(string, ...any) }, e *Extractor, blob []byte) map[uint32]map[ID]uint8 {
	found := map[uint32]map[ID]uint8{}
	next := uint32(0)
	e.Extract(blob, func(superblock uint32, ids []ID, masks []uint8) {
		if superblock < next || len(ids) == 0 || len(ids) != len(masks) {
			t.Fatalf("superblock %d after %d with %d ids and %d masks", superblock, next, len(ids), len(masks))
		}
		next = superblock + 1
		set := map[ID]uint8{}
		for i, id := range ids {
			if id >= Space || masks[i] == 0 || set[id] != 0 {
				t.Fatalf("superblock %d: id %d with mask %08b, before %08b", superblock, id, masks[i], set[id])
			}
			set[id] = masks[i]
		}
		found[superblock] = set
	})
	return found
}

func checkExtract(t interface{ Fatalf(string, ...any) }, e *Extractor, blob []byte) {
	want := superblocks(places(blob))
	got := extract(t, e, blob)
	if len(got) != len(want) {
		t.Fatalf("%d superblocks, want %d, in %q", len(got), len(want), blob)
	}
	for s, set := range want {
		if !maps.Equal(got[s], set) {
			t.Fatalf("superblock %d: got %v want %v in %q", s, got[s], set, blob)
		}
	}
}

func TestExtractIsTheModel(t *testing.T) {
	e := NewExtractor() // shared, so that leftovers of one blob would affect the next
	rapid.Check(t, func(t *rapid.T) {
		checkExtract(t, e, drawText(t))
	})
}

func TestExtractAroundBorders(t *testing.T) {
	e := NewExtractor()
	for _, piece := range pieces {
		for length := SuperblockSize - 6; length <= SuperblockSize+2; length++ {
			for _, after := range []string{"", "b", "bc", "\xff", "bcd efgh"} {
				blob := append(bytes.Repeat([]byte{'x'}, length), piece+after...)
				checkExtract(t, e, blob)
			}
		}
	}
	for length := range 6 {
		checkExtract(t, e, []byte("\u212AFoo")[:length])
	}
}

func FuzzExtract(f *testing.F) {
	f.Add([]byte("func Foo(ſtream \u212Aey) 中文\xff"))
	f.Fuzz(func(t *testing.T, blob []byte) {
		e := NewExtractor()
		checkExtract(t, e, append(bytes.Repeat([]byte("y"), SuperblockSize-5), blob...))
		checkExtract(t, e, blob)
	})
}

func TestExtractDoesNotAllocate(t *testing.T) {
	e := NewExtractor()
	blob := bytes.Repeat([]byte("func (x *Thing) Do中文ſtring() error { return nil }\n"), 1000)
	total := 0
	run := func() { e.Extract(blob, func(_ uint32, ids []ID, _ []uint8) { total += len(ids) }) }
	run()
	if n := testing.AllocsPerRun(100, run); n > 0 {
		t.Errorf("%v allocations a blob", n)
	}
}
