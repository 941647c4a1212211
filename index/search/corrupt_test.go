package search_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// smallShard is a shard with something in every section, small enough to damage at every byte. Its
// queries together read most of it.
func smallShard(t *testing.T) (data []byte, queries []query.Q) {
	t.Helper()
	long := bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog\n"), 120)
	c := &indextest.Corpus{Repos: []indextest.Repo{
		{Name: "a", Branches: []string{"main", "dev"}, Meta: map[string]string{"team": "x"}, Documents: []indextest.Document{
			{Path: "a/b.go", Content: []byte("package b\n\nfunc Foo() {}\n"), Branches: []string{"main"}, Language: "Go"},
			{Path: "a/long.txt", Content: long, Branches: []string{"main", "dev"}, Language: "Text"},
			{Path: "image.png", Skipped: true, Branches: []string{"dev"}},
		}},
		{Name: "b", Branches: []string{"main"}, Documents: []indextest.Document{
			{Path: "copy.txt", Content: long, Branches: []string{"main"}},
			{Path: "unicode.txt", Content: []byte("Größe 日本語 Kelvin \u212a\n"), Branches: []string{"main"}},
		}},
	}}
	for _, text := range []string{"", "foo", "case:yes Foo", "lazy", "f:long", "lang:go func", "b:dev fox", "日本語", "q[a-z]+k", "-fox", "r:b kelvin", "f:png"} {
		q, err := query.Parse(text, query.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		queries = append(queries, q)
	}
	return buildShard(t, c), queries
}

// answers runs the queries and returns a text for each answer, or the first error.
func answers(s *search.Shard, queries []query.Q) (out []string, err error) {
	for _, q := range queries {
		res, err := searchTree(s, q, search.Options{MaxFiles: 100, MaxMatchesPerFile: 1000})
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprintf("%+v", res.Files))
	}
	first, err := search.Prepare(queries[0])
	if err != nil {
		return nil, err
	}
	list, err := s.List(context.Background(), first, search.ListOptions{MaxSkippedFiles: 10})
	if err != nil {
		return nil, err
	}
	f, err := s.File(context.Background(), "b", []byte("copy.txt"), "", search.Options{}, search.Part{})
	return append(out, fmt.Sprintf("%+v %+v", list, f)), err
}

// checkDamaged opens and searches a damaged shard: each step gives either the answer of the sound
// shard or a typed error, and Verify finds the damage.
func checkDamaged(t *testing.T, what string, data []byte, queries []query.Q, want []string) {
	t.Helper()
	typed := func(err error) bool {
		return errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrVersion)
	}
	f, err := format.NewFile("damaged.trawl", data)
	var s *search.Shard
	if err == nil {
		s, err = search.OpenFile(f)
	}
	if err != nil {
		if !typed(err) {
			t.Fatalf("%s: open: %v", what, err)
		}
		return
	}
	if got, err := answers(s, queries); err != nil && !typed(err) {
		t.Fatalf("%s: search: %v", what, err)
	} else if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s: wrong answer without an error\n got %s\nwant %s", what, got, want)
	}
	if err := s.Verify(context.Background()); !typed(err) {
		t.Fatalf("%s: verify: %v", what, err)
	}
}

func TestFlipEveryByte(t *testing.T) {
	data, queries := smallShard(t)
	want, err := answers(openShard(t, data), queries)
	if err != nil {
		t.Fatal(err)
	}
	flips := []byte{0x01, 0x80, 0xff}
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= flips[i%len(flips)]
		checkDamaged(t, fmt.Sprintf("byte %d of %d flipped", i, len(data)), damaged, queries, want)
	}
}

func TestCutAtEveryOffset(t *testing.T) {
	data, queries := smallShard(t)
	want, err := answers(openShard(t, data), queries)
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		checkDamaged(t, fmt.Sprintf("cut to %d of %d bytes", n, len(data)), data[:n:n], queries, want)
	}
}

// TestFileCutWhileMapped truncates the file of an open shard. Reading it then faults, which must
// become an error.
func TestFileCutWhileMapped(t *testing.T) {
	data, queries := smallShard(t)
	path := filepath.Join(t.TempDir(), "x.trawl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := search.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := answers(s, queries); !errors.Is(err, format.ErrCorrupt) {
		t.Fatalf("search of a shard cut while mapped: %v, want ErrCorrupt", err)
	}
	// A fault ends the process unless its goroutine is guarded.
	for _, q := range queries {
		helped := make(chan error)
		go func() { helped <- s.Help(context.Background(), prepare(t, q)) }()
		if err := <-helped; !errors.Is(err, format.ErrCorrupt) {
			t.Fatalf("help for a shard cut while mapped: %v, want ErrCorrupt", err)
		}
	}
}

// sealed rewrites the sections of a sound shard with correct checksums, after it has changed the
// byte at flip, counted over all sections, by mask.
func sealed(t testing.TB, data []byte, flip int, mask byte) []byte {
	t.Helper()
	return rewritten(t, data, func(_ format.Tag, body []byte) []byte {
		body = bytes.Clone(body)
		if flip >= 0 && flip < len(body) {
			body[flip] ^= mask
		}
		flip -= len(body)
		return body
	})
}

// rewritten writes a shard anew with what change makes of its sections, and right checksums.
func rewritten(t testing.TB, data []byte, change func(tag format.Tag, body []byte) []byte) []byte {
	t.Helper()
	f, err := format.NewFile("sound.trawl", data)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w := format.NewWriter(&buf)
	for _, info := range f.Sections() {
		if err := w.WriteSection(info.Tag, info.Flags, change(info.Tag, data[info.Offset:][:info.Length])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// readAll opens, searches and verifies data that may not be a shard, and returns the first error.
func readAll(data []byte, queries []query.Q) error {
	f, err := format.NewFile("hostile.trawl", data)
	if err != nil {
		return err
	}
	s, err := search.OpenFile(f)
	if err != nil {
		return err
	}
	for _, q := range queries {
		if _, err := searchTree(s, q, search.Options{MaxFiles: 100, MaxMatchesPerFile: 1000}); err != nil {
			return err
		}
	}
	return s.Verify(context.Background())
}

// TestHostileBytes changes bytes of every section and writes correct checksums, as an attacker
// could. Nothing may panic or hang, and every error is typed.
func TestHostileBytes(t *testing.T) {
	data, queries := smallShard(t)
	if !bytes.Equal(sealed(t, data, -1, 0), data) {
		t.Fatal("sections written anew are not the same shard")
	}
	masks := []byte{0x01, 0x10, 0x80, 0xff}
	refused, step := 0, testrun.Rounds(5, 1)
	for i := 0; i < len(data); i += step {
		mask := masks[i%len(masks)]
		err := readAll(sealed(t, data, i, mask), queries)
		if err == nil {
			continue
		}
		if refused++; !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrVersion) {
			t.Fatalf("byte %d ^ %#x: %v", i, mask, err)
		}
	}
	t.Logf("%d of %d damaged shards were refused", refused, len(data))
}

// FuzzHostileBytes looks for several changed bytes that do harm together.
func FuzzHostileBytes(f *testing.F) {
	f.Add([]byte{}, uint16(0))
	f.Add([]byte{1, 2, 3}, uint16(100))
	f.Fuzz(func(t *testing.T, patch []byte, at uint16) {
		data, queries := smallShard(t)
		for i, b := range patch[:min(len(patch), 16)] {
			data = sealed(t, data, (int(at)+i*int(b))%len(data), b)
		}
		if err := readAll(data, queries); err != nil && !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrVersion) {
			t.Fatal(err)
		}
	})
}
