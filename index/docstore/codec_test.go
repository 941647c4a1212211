package docstore

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/format"
)

// newEncoders returns an encoder of each effort.
func newEncoders() map[Effort]encoder {
	return map[Effort]encoder{Fresh: new(fastEncoder), Compact: new(deepEncoder)}
}

// decodeNew decodes to a new buffer, and fails if more than the margin after the unit is written.
func decodeNew(dict, encoded []byte, n int) ([]byte, error) {
	const guard = 64
	buf := append(bytes.Clone(dict), make([]byte, n+decodeMargin)...)
	buf = append(buf, bytes.Repeat([]byte{0xaa}, guard)...)
	err := decodeUnit(buf, len(dict), n, encoded)
	if !bytes.Equal(buf[:len(dict)], dict) || bytes.Count(buf[len(buf)-guard:], []byte{0xaa}) != guard {
		return nil, errors.New("bytes outside of the unit are written")
	}
	return buf[len(dict):][:n], err
}

// drawText draws text that repeats parts of itself and of given words.
func drawText(t *rapid.T, label string, most int, words []byte) []byte {
	n := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, most), rapid.Just(most)).Draw(t, label)
	text := make([]byte, 0, n)
	for len(text) < n {
		switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case kind == 0 && len(words) > 0:
			at := rapid.IntRange(0, len(words)-1).Draw(t, "at")
			text = append(text, words[at:min(len(words), at+rapid.IntRange(1, 300).Draw(t, "length"))]...)
		case kind == 1 && len(text) > 0: // it may repeat what it appends
			at := rapid.IntRange(0, len(text)-1).Draw(t, "from")
			for i := range rapid.IntRange(1, 600).Draw(t, "length") {
				text = append(text, text[at+i])
			}
		default:
			text = append(text, rapid.SliceOfN(rapid.Byte(), 1, 60).Draw(t, "new")...)
		}
	}
	return text[:n]
}

// TestUnitsDecode encodes units one after the other, by both encoders, and decodes them
// by our decoder and by another one.
func TestUnitsDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var dict []byte
		if rapid.Bool().Draw(t, "with dictionary") {
			dict = drawText(t, "dictionary", MaxDictionary, nil)
		}
		for effort, e := range newEncoders() {
			e.setDictionary(dict)
			for range 3 {
				unit := drawText(t, "unit", SuperblockSize, dict)
				checkUnit(t, effort, dict, unit, bytes.Clone(e.encode(unit)))
			}
		}
	})
}

func checkUnit(t testingT, effort Effort, dict, unit, encoded []byte) {
	t.Helper()
	got, err := decodeNew(dict, encoded, len(unit))
	if err != nil || !bytes.Equal(got, unit) {
		t.Fatalf("effort %d: a unit of %d bytes is not the same after %d bytes: %v", effort, len(unit), len(encoded), err)
	}
	if len(encoded) >= len(unit) {
		if len(encoded) > len(unit) {
			t.Fatalf("effort %d: a unit of %d bytes takes %d", effort, len(unit), len(encoded))
		}
		return
	}
	other := make([]byte, len(unit))
	if n, err := lz4.UncompressBlockWithDict(encoded, other, dict); err != nil || !bytes.Equal(other[:n], unit) {
		t.Fatalf("effort %d: another decoder reads %d other bytes: %v", effort, n, err)
	}
}

// TestOthersUnitsDecode decodes what another encoder wrote.
func TestOthersUnitsDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := drawText(t, "unit", SuperblockSize, nil)
		encoded := make([]byte, maxEncoded)
		n, err := lz4.CompressBlockHC(unit, encoded, lz4.Level5, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 || n >= len(unit) {
			return
		}
		if got, err := decodeNew(nil, encoded[:n], len(unit)); err != nil || !bytes.Equal(got, unit) {
			t.Fatalf("a unit of %d bytes decodes wrong: %v", len(unit), err)
		}
	})
}

// TestEncodersForget: the encoding of a unit depends on it and its dictionary, and not on anything
// encoded before.
func TestEncodersForget(t *testing.T) {
	text := source(t)
	dict, unit := text[:20_000], text[30_000:][:SuperblockSize]
	for effort, e := range newEncoders() {
		e.setDictionary(dict)
		want := bytes.Clone(e.encode(unit))
		e.setDictionary(text[:MaxDictionary])
		e.encode(text[40_000:][:SuperblockSize])
		e.encode(text[45_000:][:100])
		e.setDictionary(dict)
		if got := e.encode(unit); !bytes.Equal(got, want) {
			t.Errorf("effort %d: a unit takes %d bytes, at first %d", effort, len(got), len(want))
		}
	}
}

// TestEffortsPay: each step that costs time makes units smaller.
func TestEffortsPay(t *testing.T) {
	text := source(t)
	size := func(effort Effort, dict []byte) (sum int) {
		e := newEncoders()[effort]
		e.setDictionary(dict)
		for rest := text; len(rest) > 0; rest = rest[min(len(rest), SuperblockSize):] {
			sum += len(e.encode(rest[:min(len(rest), SuperblockSize)]))
		}
		return sum
	}
	sampled, covered := appendDictionary(nil, text, Fresh), appendDictionary(nil, text, Compact)
	if len(sampled) > dictionarySize(len(text)) || len(covered) > dictionarySize(len(text)) {
		t.Errorf("dictionaries of %d and %d bytes", len(sampled), len(covered))
	}
	// Each is smaller than the one before, including its dictionary. On so little text a covering
	// dictionary gains 1 or 2 %: it must not lose.
	// text as this a covering dictionary gains 1 or 2 %: it must not lose.
	sizes := []int{size(Fresh, nil), size(Fresh, sampled) + len(sampled), size(Compact, covered) + len(covered)}
	if most := size(Compact, sampled) + len(sampled); sizes[2] > most+most/100 {
		t.Errorf("a covering dictionary makes %d bytes of %d", sizes[2], most)
	}
	t.Logf("%d bytes take %v", len(text), sizes)
	for i := 1; i < len(sizes); i++ {
		if sizes[i] >= sizes[i-1] {
			t.Errorf("step %d: %d bytes take %v", i, len(text), sizes)
		}
	}
}

// TestEncodingAllocatesNothing that a shard needs more than once.
func TestEncodingAllocatesNothing(t *testing.T) {
	text := source(t)
	buf := make([]byte, MaxDictionary+SuperblockSize+decodeMargin)
	for effort, e := range newEncoders() {
		dict := appendDictionary(nil, text, effort)
		copy(buf, dict)
		if n := testing.AllocsPerRun(10, func() {
			e.setDictionary(dict)
			for at := 0; at < len(text)-SuperblockSize; at += SuperblockSize {
				encoded := e.encode(text[at : at+SuperblockSize])
				if err := decodeUnit(buf, len(dict), SuperblockSize, encoded); err != nil {
					t.Fatal(err)
				}
			}
		}); n > 5 { // one for each unit is about forty
			t.Errorf("effort %d: %v allocations", effort, n)
		}
	}
}

// source is the text of this package, some 200 KB.
func source(t testingT) (text []byte) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, data...)
	}
	return text
}

// TestManyDictionaries reads units of all dictionaries, alternating between them.
func TestManyDictionaries(t *testing.T) {
	const blobs = 2*unitsPerDictionary + 100
	text := source(t)
	for effort := range newEncoders() {
		var buf bytes.Buffer
		w := format.NewWriter(&buf)
		content, err := NewContentWriter(w, effort, 1)
		if err != nil {
			t.Fatal(err)
		}
		blob := func(i uint32) []byte { return text[int(i)*31%(len(text)-500):][:500] }
		for i := range uint32(blobs) {
			if first, err := content.Add(blob(i)); err != nil || first != i {
				t.Fatalf("blob %d is at superblock %d: %v", i, first, err)
			}
		}
		if err := errors.Join(content.Close(), w.Close()); err != nil {
			t.Fatal(err)
		}
		f, err := format.NewFile("test.trawl", buf.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		c, err := OpenContent(f)
		if err != nil {
			t.Fatal(err)
		}
		if c.units.dictionaries.Len() < 3*4 {
			t.Fatalf("%d bytes of dictionaries", c.units.dictionaries.Len())
		}
		r := c.NewReader()
		for i := range uint32(blobs) {
			i = i * 1543 % blobs
			if got, err := r.Append(nil, i, 0, 1000); err != nil || !bytes.Equal(got, blob(i)) {
				t.Fatalf("effort %d: blob %d reads wrong: %v", effort, i, err)
			}
		}
	}
}

// FuzzDecodeUnit decodes hostile bytes: it gets an error or the whole unit, and nothing is written
// outside of the unit. If our decoder accepts them, another one decodes the same.
func FuzzDecodeUnit(f *testing.F) {
	text := source(f)
	for _, e := range newEncoders() {
		for _, unit := range [][]byte{[]byte("x"), bytes.Repeat([]byte("text "), 800), text[:SuperblockSize]} {
			for _, dict := range [][]byte{nil, text[5000:9000]} {
				e.setDictionary(dict)
				f.Add(bytes.Clone(e.encode(unit)), dict, uint16(len(unit)))
			}
		}
	}
	f.Fuzz(func(t *testing.T, encoded, dict []byte, n uint16) {
		dict, size := dict[:min(len(dict), MaxDictionary)], int(n%SuperblockSize)+1
		got, err := decodeNew(dict, encoded, size)
		if got == nil {
			t.Fatal(err)
		}
		if err != nil || len(encoded) >= size {
			return
		}
		other := make([]byte, size)
		if n, err := lz4.UncompressBlockWithDict(encoded, other, dict); err != nil || n != size || !bytes.Equal(got, other) {
			t.Fatalf("another decoder reads %q, ours %q: %v", other, got, err)
		}
	})
}
