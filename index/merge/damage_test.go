package merge_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/merge"
	"github.com/trawl-search/trawl/internal/testrun"
)

// baseAndDelta returns a base with a hidden document, a deleted repo and a skipped document, and a
// delta: the shards, and what to take from each.
func baseAndDelta(t testing.TB) (shards [2][]byte, takes [2][]merge.Repo) {
	t.Helper()
	long := bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog\n"), 120)
	c := &indextest.Corpus{Repos: []indextest.Repo{
		{Name: "a", Branches: []string{"main", "dev"}, Meta: map[string]string{"team": "x"}, Documents: []indextest.Document{
			{Path: "a/b.go", Content: []byte("package b\n\nfunc Foo() {}\n"), Branches: []string{"main"}, Language: "Go"},
			{Path: "a/long.txt", Content: long, Branches: []string{"main", "dev"}, Language: "Text"},
			{Path: "image.png", Skipped: true, Branches: []string{"dev"}},
			{Path: "unicode.txt", Content: []byte("Größe 日本語 Kelvin \u212a\n"), Branches: []string{"main"}},
		}},
		{Name: "b", Branches: []string{"main"}, Documents: []indextest.Document{
			{Path: "copy.txt", Content: long, Branches: []string{"main"}},
		}},
	}}
	base := modelOf(c)
	c.Repos[0].Documents = []indextest.Document{{Path: "a/b.go", Content: []byte("package b\n\nfunc Bar() {}\n"), Branches: []string{"main"}, Language: "Go"}}
	delta := modelOf(c)
	shards[0], _ = shardOf(t, base, build.Options{})
	shards[1], _ = shardOf(t, delta[:1], build.Options{})
	takes[0] = []merge.Repo{{Record: base[0].record, Hidden: []uint32{0}}}
	takes[1] = []merge.Repo{{Record: base[0].record}}
	return shards, takes
}

// mergeShards opens and merges data that may not be shards.
func mergeShards(w io.Writer, shards [2][]byte, takes [2][]merge.Repo) error {
	var inputs []merge.Input
	for i, data := range shards {
		f, err := format.NewFile(fmt.Sprint("input ", i), data)
		if err != nil {
			return err
		}
		inputs = append(inputs, merge.Input{File: f, Repos: takes[i]})
	}
	_, err := merge.Shards(context(), w, inputs, merge.Options{})
	return err
}

// step returns the distance between damaged bytes.
func step(all int) int { return testrun.Rounds(5*all, all) }

// checkDamaged merges with one damaged input. Either it fails with an error that names the input
// and a section, or the merge did not need the damaged bytes.
func checkDamaged(t *testing.T, what string, input int, damaged []byte, want []byte) {
	t.Helper()
	shards, takes := baseAndDelta(t)
	shards[input] = damaged
	var out bytes.Buffer
	err := mergeShards(&out, shards, takes)
	var corrupt *format.CorruptError
	switch {
	case err == nil:
		if !bytes.Equal(out.Bytes(), want) {
			t.Fatalf("%s: another shard without an error", what)
		}
	case errors.As(err, &corrupt):
		if corrupt.File != fmt.Sprint("input ", input) || corrupt.Section == "" {
			t.Fatalf("%s: the error does not say where: %v", what, err)
		}
	case !errors.Is(err, format.ErrVersion):
		t.Fatalf("%s: %v", what, err)
	}
}

func TestDamage(t *testing.T) {
	shards, takes := baseAndDelta(t)
	var want bytes.Buffer
	if err := mergeShards(&want, shards, takes); err != nil {
		t.Fatal(err)
	}
	flips := []byte{0x01, 0x80, 0xff}
	for input, data := range shards {
		for i := 0; i < len(data); i += step(17) {
			damaged := bytes.Clone(data)
			damaged[i] ^= flips[i%len(flips)]
			checkDamaged(t, fmt.Sprintf("byte %d of %d flipped", i, len(data)), input, damaged, want.Bytes())
		}
		for n := 0; n < len(data); n += step(37) {
			checkDamaged(t, fmt.Sprintf("cut to %d of %d bytes", n, len(data)), input, data[:n:n], want.Bytes())
		}
	}
}

// TestDamageOfALargeShard flips bytes of a shard with many checksum blocks, so that the data before
// and after is sound.
func TestDamageOfALargeShard(t *testing.T) {
	repo := repository{record: docstore.Repo{Name: "r", Branches: []docstore.Branch{{Name: "main"}}}}
	for i := range 400 {
		var text []byte
		for j := range 60 {
			text = fmt.Appendf(text, "func f%d_%d() { return %x }\n", i, j, i*i*7919+j*104729)
		}
		repo.documents = append(repo.documents, document{path: fmt.Sprintf("%04d.go", i), content: text, oid: gitID(text), branches: []string{"main"}})
	}
	data, _ := shardOf(t, []repository{repo}, build.Options{})
	take := []merge.Repo{{Record: repo.record, Hidden: []uint32{7}}}
	sound, _ := merged(t, []merge.Input{{File: open(t, "large", data), Repos: take}}, merge.Options{})
	for i := 0; i < len(data); i += step(len(data) / 60) {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x10
		f, err := format.NewFile("large", damaged)
		var out bytes.Buffer
		if err == nil {
			_, err = merge.Shards(context(), &out, []merge.Input{{File: f, Repos: take}}, merge.Options{})
		}
		var corrupt *format.CorruptError
		if err == nil && !bytes.Equal(out.Bytes(), sound) || err != nil && (!errors.As(err, &corrupt) || corrupt.File != "large" || corrupt.Section == "") {
			t.Fatalf("byte %d of %d flipped: %v", i, len(data), err)
		}
	}
}

// TestFileCutWhileMerged truncates an input's file at each write. Later reads of it fault, in any
// goroutine.
func TestFileCutWhileMerged(t *testing.T) {
	shards, takes := baseAndDelta(t)
	path := filepath.Join(t.TempDir(), "base.trawl")
	failed := 0
	for n := 1; ; n++ {
		if err := os.WriteFile(path, shards[0], 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := format.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		inputs := []merge.Input{{File: f, Repos: takes[0]}, {File: open(t, "delta", shards[1]), Repos: takes[1]}}
		cut := &cutter{path: path, left: n}
		_, err = merge.Shards(context(), cut, inputs, merge.Options{Processors: 2})
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if cut.left > 0 { // there are fewer writes than that
			break
		}
		var corrupt *format.CorruptError
		if err != nil && (!errors.As(err, &corrupt) || corrupt.File != path || corrupt.Section == "") {
			t.Fatalf("merging what is cut at write %d: %v", n, err)
		}
		if err != nil {
			failed++
		}
	}
	// The units are written first, then the postings. The tail is written when nothing is read any more.
	if failed < 5 {
		t.Errorf("%d of the cuts were noticed", failed)
	}
}

// cutter truncates a file at a chosen write.
type cutter struct {
	path string
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if c.left--; c.left == 0 {
		return len(p), os.Truncate(c.path, 0)
	}
	return len(p), nil
}

// sealed rewrites the sections of a sound shard with correct checksums, after it has changed the
// byte at flip, counted over all sections, by mask.
func sealed(t testing.TB, data []byte, flip int, mask byte) []byte {
	t.Helper()
	f, err := format.NewFile("sound", data)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w := format.NewWriter(&buf)
	for _, info := range f.Sections() {
		body := bytes.Clone(data[info.Offset : info.Offset+info.Length])
		if flip >= 0 && flip < len(body) {
			body[flip] ^= mask
		}
		flip -= len(body)
		if err := w.WriteSection(info.Tag, info.Flags, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// checkHostile merges what an attacker made: the result is a typed error or a shard.
func checkHostile(t *testing.T, what string, shards [2][]byte, takes [2][]merge.Repo) {
	t.Helper()
	var out bytes.Buffer
	err := mergeShards(&out, shards, takes)
	switch {
	case err == nil:
		if err := open(t, "merged", out.Bytes()).Verify(context()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	case !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrVersion) && !errors.Is(err, merge.ErrInputs):
		t.Fatalf("%s: %v", what, err)
	}
}

// TestHostileBytes changes bytes of every section and writes correct checksums.
func TestHostileBytes(t *testing.T) {
	sound, takes := baseAndDelta(t)
	masks := []byte{0x01, 0x10, 0x80, 0xff}
	for input, data := range sound {
		for i := 0; i < len(data); i += step(3) {
			shards := sound
			mask := masks[i/3%len(masks)]
			shards[input] = sealed(t, data, i, mask)
			checkHostile(t, fmt.Sprintf("byte %d ^ %#x of input %d", i, mask, input), shards, takes)
		}
	}
}

// FuzzHostileBytes looks for several changed bytes that do harm together.
func FuzzHostileBytes(f *testing.F) {
	f.Add([]byte{}, uint16(0))
	f.Add([]byte{1, 2, 3}, uint16(100))
	sound, takes := baseAndDelta(f)
	f.Fuzz(func(t *testing.T, patch []byte, at uint16) {
		shards := sound
		for i, b := range patch[:min(len(patch), 16)] {
			shards[0] = sealed(t, shards[0], (int(at)+i*int(b))%len(shards[0]), b)
		}
		checkHostile(t, "fuzzed", shards, takes)
	})
}
