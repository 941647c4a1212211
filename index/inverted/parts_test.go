package inverted

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/trawl-search/trawl/index/format"
)

// indexOf returns a file with the index of words of n blobs, all with the same text.
func indexOf(t *testing.T, text []byte, n int) *format.File {
	t.Helper()
	b, units := NewWordBuilder(), (len(text)+4095)/4096
	for i := range n {
		if err := b.Add(uint32(i*units), text, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	return written(t, func(w *format.Writer) error { return b.Write(w, uint32(n*units), NewNgramBuilder()) })
}

// written returns the file that a function writes.
func written(t *testing.T, write func(w *format.Writer) error) *format.File {
	t.Helper()
	var file bytes.Buffer
	w := format.NewWriter(&file)
	if err := errors.Join(write(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("test", file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// opened opens the index of words in a file.
func opened(t *testing.T, f *format.File) *Words {
	t.Helper()
	x, err := OpenWords(f)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// mergedOf merges indexes, one after the other.
func mergedOf(t *testing.T, w *format.Writer, files ...*format.File) error {
	t.Helper()
	var list []Source
	superblocks := uint32(0)
	for _, f := range files {
		var places []uint32
		for range opened(t, f).Superblocks() {
			places, superblocks = append(places, superblocks), superblocks+1
		}
		list = append(list, Source{File: f, Places: places})
	}
	return MergeWords(t.Context(), w, superblocks, list, NewNgramBuilder(), MergeOptions{Processors: 1})
}

// TestWordsThatHoldManyParts: words that hold very many parts have no list of parts made of them, whether they are indexed or merged. Words that
// several sources have count once.
func TestWordsThatHoldManyParts(t *testing.T) {
	stem := []byte("abcdefghijklmnopqrstuvwxyzacegikmoqsuwybdfhj")
	var nested, plain []byte
	for n := leastPart; n <= mostPart; n++ {
		for i := 0; i+n <= len(stem); i++ {
			for k := range partWords {
				nested = fmt.Appendf(nested, "%s%d\n", stem[i:i+n], k)
			}
		}
	}
	var some []byte // words that hold 8 parts and themselves, without the number
	for k := range 1000 {
		some = fmt.Appendf(some, "%s%d\n", stem[:12], k)
		for i := 0; i < 8 && k < partWords; i++ {
			some = fmt.Appendf(some, "%s%d\n", stem[i:i+4], k)
		}
		nested, plain = fmt.Appendf(nested, "%sz%d\n", stem, k), fmt.Appendf(plain, "field%d\n", k)
	}
	for _, c := range []struct {
		name  string
		text  []byte
		parts int64
	}{{"nested", nested, 0}, {"plain", plain, 1}, {"some", some, 9}, {"both", append(nested, plain...), 0}} {
		t.Run(c.name, func(t *testing.T) {
			built := indexOf(t, c.text, 1)
			merged := written(t, func(w *format.Writer) error { return mergedOf(t, w, built, built, built) })
			for _, f := range []*format.File{built, merged} {
				if got := opened(t, f).parts.Len() / partEntry; got != c.parts {
					t.Errorf("%d parts, not %d", got, c.parts)
				}
			}
		})
	}
}

// TestImpossibleCounts: lists whose counts cannot be, with checksums that are right, make no list of a part that cannot be read, and no merge panics.
func TestImpossibleCounts(t *testing.T) {
	var text []byte
	for i := range partWords {
		text = fmt.Appendf(text, "k%02dkey\n", i)
	}
	for _, superblocks := range []int{1, 7} {
		for _, count := range []uint16{1, MaxCount / partWords, MaxCount/partWords + 1, 100, 512, 1024, MaxCount} {
			f := withCounts(t, indexOf(t, text, superblocks), count, superblocks)
			var file bytes.Buffer
			w := format.NewWriter(&file)
			err := errors.Join(mergedOf(t, w, f), w.Close())
			if possible := int(count)*partWords <= MaxCount; (err == nil) != possible {
				t.Errorf("%d times in each of %d superblocks: %v", count, superblocks, err)
			} else if err != nil {
				checkCorrupt(t, err)
			}
		}
	}
}

// withCounts replaces the lists of all words by ones with a count in each superblock.
func withCounts(t *testing.T, f *format.File, count uint16, superblocks int) *format.File {
	t.Helper()
	var lists []run
	x := opened(t, f)
	for number := range x.lists.terms {
		var r run
		for i := range superblocks {
			r.superblocks, r.masks, r.defined = append(r.superblocks, uint32(i)), append(r.masks, 1), append(r.defined, false)
			if r.counts = append(r.counts, count); number >= x.Len() { // of the part
				r.counts[i] = partWords
			}
		}
		lists = append(lists, r)
	}
	hostile := writeWords(t, lists, uint32(superblocks))
	return written(t, func(w *format.Writer) (err error) {
		for _, info := range f.Sections() {
			section, _ := f.Section(info.Tag)
			data, readErr := section.All()
			switch info.Tag {
			case wordTags.Lists:
				data = hostile[0]
			case wordTags.Table:
				data = hostile[1]
			}
			err = errors.Join(err, readErr, w.WriteSection(info.Tag, info.Flags, data))
		}
		return err
	})
}
