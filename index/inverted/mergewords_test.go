package inverted_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inorder"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/internal/testrun"
)

// split has the blobs of a text, dealt to sources among other blobs that are gone.
type split struct {
	files       []*format.File
	places      [][]uint32
	superblocks uint32
}

func superblocksOf(blob []byte) uint32 {
	return uint32((len(blob) + ngram.SuperblockSize - 1) / ngram.SuperblockSize)
}

// deal deals blobs to sources, in another order in each, and adds blobs that are gone.
func deal(t testing.TB, r *rand.Rand, b *inverted.WordBuilder, blobs [][]byte) (s split) {
	t.Helper()
	var place []uint32 // by blob
	for _, blob := range blobs {
		place = append(place, s.superblocks)
		s.superblocks += superblocksOf(blob)
	}
	numbers := make([][]int, 1+r.IntN(5)) // of the blobs in each source, negative if gone
	for i := range blobs {
		source := r.IntN(len(numbers))
		numbers[source] = append(numbers[source], i)
	}
	for _, mine := range numbers {
		for range r.IntN(4) {
			mine = append(mine, -1)
		}
		if r.IntN(2) == 0 {
			r.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		}
		var texts [][]byte
		var places []uint32
		for _, i := range mine {
			text, to := randomBlob(r, r.IntN(9000)), uint32(inverted.Gone)
			if i >= 0 {
				text, to = blobs[i], place[i]
			}
			texts = append(texts, text)
			for j := range superblocksOf(text) {
				if to != inverted.Gone {
					places = append(places, to+j)
				} else {
					places = append(places, to)
				}
			}
		}
		s.files, s.places = append(s.files, build(t, b, texts)), append(s.places, places)
	}
	return s
}

// merge merges the sources into a file with only the sections of words.
func (s *split) merge(ctx context.Context, opts inverted.MergeOptions) ([]byte, error) {
	var sources []inverted.Source
	for i, f := range s.files {
		sources = append(sources, inverted.Source{File: f, Places: s.places[i]})
	}
	var data bytes.Buffer
	w := format.NewWriter(&data)
	if err := inverted.MergeWords(ctx, w, s.superblocks, sources, inverted.NewNgramBuilder(), opts); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

// TestMerge: merging gives the same as building, whatever is kept in memory and however many
// processors there are.
func TestMergeWords(t *testing.T) {
	b := inverted.NewWordBuilder()
	for seed := range testrun.Rounds[uint64](12, 40) {
		r := rand.New(rand.NewPCG(seed, 2))
		blobs := randomBlobs(r)
		if seed == 0 {
			blobs = nil
		}
		want := build(t, b, blobs)
		s := deal(t, r, b, blobs)
		for _, opts := range []inverted.MergeOptions{{Processors: 1}, {Processors: 3, Spill: inorder.BufferConfig{Dir: t.TempDir(), Memory: 1}}} {
			data, err := s.merge(t.Context(), opts)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got, err := format.NewFile("merged", data)
			if err != nil {
				t.Fatal(err)
			}
			for i, info := range want.Sections() {
				a, _ := want.Section(info.Tag)
				if got.Sections()[i].Tag != info.Tag {
					t.Fatalf("seed %d: section %s is missing", seed, info.Tag)
				}
				o, _ := got.Section(info.Tag)
				if x, y := a.Checked(), o.Checked(); !bytes.Equal(x, y) {
					t.Fatalf("seed %d: section %s is %d bytes %.60x, want %d bytes %.60x", seed, info.Tag, len(y), y, len(x), x)
				}
			}
		}
	}
}

// largeBlobs returns blobs with long posting lists, for several batches of words.
func largeBlobs(r *rand.Rand) (blobs [][]byte) {
	for i := range 300 {
		blob := randomBlob(r, 3000+r.IntN(3000))
		for range 20 {
			blob = append(blob, 'w')
			for n := i*1000 + r.IntN(2000); n > 0; n /= 7 {
				blob = append(blob, "abcdefg"[n%7])
			}
			blob = append(blob, '\n')
		}
		blobs = append(blobs, blob)
	}
	return blobs
}

// TestMergeStops: an error of Pace, of the context or of temporary files stops the merge whenever
// it comes, and no goroutine is left.
func TestMergeStops(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	s := deal(t, r, inverted.NewWordBuilder(), largeBlobs(r))
	paced := 0
	opts := inverted.MergeOptions{Processors: 3, Pace: func(int) error { paced++; return nil }}
	if _, err := s.merge(t.Context(), opts); err != nil || paced < 2 {
		t.Fatalf("paced %d times: %v", paced, err)
	}
	enough := errors.New("enough")
	for n := range paced {
		ctx, cancel := context.WithCancel(t.Context())
		left := n
		opts.Pace = func(int) error {
			if left--; left < 0 {
				return enough
			}
			return nil
		}
		if _, err := s.merge(ctx, opts); !errors.Is(err, enough) {
			t.Errorf("stopped at %d of %d: %v", n, paced, err)
		}
		left = n
		opts.Pace = func(int) error {
			if left--; left < 0 {
				cancel()
			}
			return nil
		}
		if _, err := s.merge(ctx, opts); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled at %d of %d: %v", n, paced, err)
		}
		cancel()
	}
	opts = inverted.MergeOptions{Processors: 1, Spill: inorder.BufferConfig{Dir: "/nonexistent", Memory: 1}}
	if _, err := s.merge(t.Context(), opts); err == nil {
		t.Error("merged without a folder for what is held")
	}
}

// sealed writes a file with the sections of another one, one of them changed, with correct
// checksums.
func sealed(t testing.TB, f *format.File, tag format.Tag, data []byte) *format.File {
	t.Helper()
	var file bytes.Buffer
	w := format.NewWriter(&file)
	for _, info := range f.Sections() {
		section, _ := f.Section(info.Tag)
		content := section.Checked()
		if info.Tag == tag {
			content = data
		}
		if err := w.WriteSection(info.Tag, format.Required, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := format.NewFile("hostile", file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// mergeHostile merges with one source whose section is changed, with correct checksums. The merge
// returns an error that names file and section, or writes a shard that can be read without a panic.
func mergeHostile(t testing.TB, s split, source int, tag format.Tag, data []byte) (failed bool) {
	t.Helper()
	s.files = slices.Clone(s.files)
	s.files[source] = sealed(t, s.files[source], tag, data)
	merged, err := s.merge(t.Context(), inverted.MergeOptions{Processors: 2})
	if err != nil {
		var corrupt *format.CorruptError
		if !errors.As(err, &corrupt) && !errors.Is(err, format.ErrVersion) || corrupt != nil && (corrupt.File != "hostile" || corrupt.Section == "") {
			t.Fatalf("section %s: %v", tag, err)
		}
		return true
	}
	f, err := format.NewFile("merged", merged)
	if err != nil {
		t.Fatal(err)
	}
	x, err := inverted.OpenWords(f)
	if err != nil {
		t.Fatalf("section %s: what was merged does not open: %v", tag, err)
	}
	var block inverted.Block
	var it inverted.Iterator
	for n := range x.Blocks() {
		if err := x.Block(n, &block); err != nil {
			t.Fatalf("section %s: block %d: %v", tag, n, err)
		}
		for i := range block.Len() {
			list, err := x.List(block.First + uint32(i))
			if err != nil {
				t.Fatalf("section %s: a list of what was merged: %v", tag, err)
			}
			for it.Reset(list); it.Next(); {
				it.Mask()
			}
			if it.Err() != nil {
				t.Fatalf("section %s: a list of what was merged: %v", tag, it.Err())
			}
		}
	}
	return false
}

// TestMergeHostile changes bytes of each section of a source, and truncates it.
func TestMergeHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	blobs := append(randomBlobs(r), randomBlob(r, 60_000), []byte("a \u212Aelvin b"), nil)
	s := deal(t, r, inverted.NewWordBuilder(), blobs)
	failed := map[format.Tag]int{}
	for i, info := range s.files[0].Sections() {
		for round := range testrun.Rounds(30, 120) {
			source := r.IntN(len(s.files))
			section, _ := s.files[source].Section(info.Tag)
			data := bytes.Clone(section.Checked())
			if len(data) == 0 {
				continue
			}
			switch (round + i) % 3 {
			case 0:
				data[r.IntN(len(data))] ^= 1 << r.IntN(8)
			case 1:
				data[r.IntN(len(data))] = byte(r.Uint32())
				data[r.IntN(len(data))] = 0xff
			case 2:
				data = data[:r.IntN(len(data))]
			}
			if mergeHostile(t, s, source, info.Tag, data) {
				failed[info.Tag]++
			}
		}
	}
	for _, tag := range []format.Tag{format.TagLexicon, format.TagLexiconOffsets, format.TagWordPostings, format.TagWordTable, format.TagOpaque, format.TagWordInfo} {
		if failed[tag] == 0 {
			t.Errorf("no change of section %s was noticed", tag)
		}
	}
}
