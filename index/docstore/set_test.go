package docstore_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/docstore"
)

// TestSameSet: a set survives encoding, has the same numbers as a map, and its
// code is the only one that Code makes for it.
func TestSameSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]uint32{1, 300, math.MaxUint32}).Draw(t, "most")
		numbers := rapid.SliceOf(rapid.Uint32Range(0, most)).Draw(t, "numbers")
		more := rapid.SliceOf(rapid.Uint32Range(0, most)).Draw(t, "more")
		want := make(map[uint32]bool)
		for _, n := range slices.Concat(numbers, more) {
			want[n] = true
		}
		set := docstore.SetOf(slices.Clone(numbers)).With(more...)
		read, err := docstore.ParseSet(set.Code())
		if err != nil || !slices.Equal(read.Numbers(), set.Numbers()) || read.Len() != len(want) {
			t.Fatalf("%v becomes %v, %v; want %v", set.Numbers(), read.Numbers(), err, want)
		}
		for n := range want {
			if !read.Has(n) || read.Has(n+1) != want[n+1] || read.Has(n-1) != want[n-1] {
				t.Fatalf("%v does not tell %d and its neighbours right", read.Numbers(), n)
			}
		}
	})
}

func TestEmpty(t *testing.T) {
	if set, err := docstore.ParseSet(nil); err != nil || set.Len() != 0 || set.Has(0) || len(set.Code()) != 0 {
		t.Errorf("no bytes: %v, %v", set, err)
	}
}

func TestWrongBytes(t *testing.T) {
	for what, code := range map[string][]byte{
		"cut":             {0x80},
		"not a number":    slices.Repeat([]byte{0xff}, 12),
		"too large":       binary.AppendUvarint(nil, 1<<32),
		"after the last":  append(binary.AppendUvarint(nil, math.MaxUint32), 0),
		"sum is too much": binary.AppendUvarint(binary.AppendUvarint(nil, 1<<31), 1<<31),
		"too long":        make([]byte, docstore.MaxSetBytes+1),
	} {
		if set, err := docstore.ParseSet(code); !errors.Is(err, docstore.ErrSet) {
			t.Errorf("%s: %d numbers, %v", what, set.Len(), err)
		}
	}
	if _, err := docstore.ParseSet(make([]byte, docstore.MaxSetBytes)); err != nil {
		t.Error(err)
	}
}

// FuzzParse: what ParseSet accepts survives another round of encoding.
func FuzzParse(f *testing.F) {
	f.Add([]byte{0, 5, 0x80, 1})
	f.Fuzz(func(t *testing.T, code []byte) {
		set, err := docstore.ParseSet(code)
		if err != nil {
			return
		}
		again, err := docstore.ParseSet(set.Code())
		if err != nil || !slices.Equal(again.Numbers(), set.Numbers()) || !slices.IsSorted(set.Numbers()) {
			t.Errorf("%x: %v, then %v, %v", code, set.Numbers(), again.Numbers(), err)
		}
	})
}
