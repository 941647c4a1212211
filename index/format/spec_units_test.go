package format_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// TestSpecOfUnits decodes the units of contents and names as described in
// section 5, with an LZ4 decoder that is not ours.
func TestSpecOfUnits(t *testing.T) {
	s, sh := readSpec(t), sample(t)
	n := counts(t, s, sh)
	for tag, texts := range map[string][][]byte{"UNIT": sh.blobs, "NAME": {sh.paths}} {
		header, _ := s.fixed(t, "Header of UNIT and NAME", sh.sections[tag][:12])
		per := header["units per dictionary"]
		if tag == "NAME" && per != 0 {
			t.Errorf("names have a dictionary for %d units", per)
		}
		compare(t, tag, header, map[string]uint64{"codec": 0, "unit size": 4096, "units per dictionary": per})
		var dict []byte
		if per > 0 {
			dict = firstDictionary(t, sh.sections["DICT"], (n["superblocks"]+per-1)/per)
		}
		offsets, _, _ := readList(t, sh.sections[map[string]string{"UNIT": "UOFF", "NAME": "NOFF"}[tag]])
		if offsets[0] != 12 {
			t.Errorf("the first unit of %s is at %d", tag, offsets[0])
		}
		for _, text := range texts {
			for unit := range slices.Chunk(text, 4096) {
				if got := decode(t, sh.sections[tag][offsets[0]:offsets[1]], len(unit), dict); !bytes.Equal(got, unit) {
					t.Fatalf("unit at %d of %s decodes to other bytes", offsets[0], tag)
				}
				offsets = offsets[1:]
			}
		}
		if len(offsets) != 1 {
			t.Errorf("%s has %d units more", tag, len(offsets)-1)
		}
	}
}

// firstDictionary returns the only dictionary of a sample.
func firstDictionary(t *testing.T, data []byte, count uint64) []byte {
	t.Helper()
	if count != 1 || uint64(le.Uint32(data)) != uint64(len(data)-4) || len(data) == 4 {
		t.Fatalf("%d dictionaries, the first one to %d of %d bytes", count, le.Uint32(data), len(data))
	}
	return data[4:]
}

func decode(t *testing.T, encoded []byte, size int, dict []byte) []byte {
	t.Helper()
	if len(encoded) == size {
		return encoded
	}
	unit := make([]byte, size)
	n, err := lz4.UncompressBlockWithDict(encoded, unit, dict)
	if err != nil || n != size {
		t.Fatalf("a unit of %d bytes decodes to %d: %v", size, n, err)
	}
	return unit
}
