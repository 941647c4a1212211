package engine

import (
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/index/docstore"
)

// twoRepos makes folders with files of known content.
func twoRepos(t *testing.T) []corpus.Repo {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"a/x.go": "package x // needle\n", "a/y.txt": "nothing\n", "a/z.bin": "needle\x00", "b/dir/x.go": "package x // Needle\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return []corpus.Repo{{Name: "a", Dir: filepath.Join(root, "a")}, {Name: "b", Dir: filepath.Join(root, "b")}}
}

func TestIndexAndSearch(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector may free what a builder left
	for _, perRepo := range []bool{false, true} {
		done, err := Index(t.Context(), twoRepos(t), t.TempDir(), perRepo)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 1, true: 2}[perRepo]; len(done.Shards) != want || done.Documents != 4 || done.Skipped != 1 {
			t.Errorf("per repo %t: %+v", perRepo, done)
		}
		if perRepo && done.Reused != 2 {
			t.Errorf("%d of 2 builders had the memory of an earlier one", done.Reused)
		}
		e, err := OpenEngine(done.Shards)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		for want, q := range map[string]corpus.Query{
			"[a/x.go b/dir/x.go]": {Patterns: []string{"needle"}},
			"[b/dir/x.go]":        {Patterns: []string{"Needle"}, CaseSensitive: true},
			"[a/y.txt]":           {Patterns: []string{"nothing|none"}, File: `\.txt$`},
			"[]":                  {Patterns: []string{"needle", "absent"}},
		} {
			files, err := e.Files(t.Context(), q)
			if got := slices.Sorted(maps.Keys(files)); err != nil || want != sprint(got) {
				t.Errorf("%s: got %q, want %s (%v)", q.Text(), got, want, err)
			}
		}
		skipped, err := e.Skipped(t.Context())
		if err != nil || len(skipped) != 1 || skipped["a/z.bin"] == "" {
			t.Errorf("skipped %v (%v)", skipped, err)
		}
	}
}

// TestPack: the packs have all repos, and each is full at the limit.
func TestPack(t *testing.T) {
	done, err := Index(t.Context(), twoRepos(t), t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[uint64]int{1: 2, 1 << 20: 1} {
		packed, err := Pack(t.Context(), done.Shards, t.TempDir(), limit, docstore.Compact)
		if err != nil {
			t.Fatal(err)
		}
		if len(packed.Shards) != want || packed.FromShards != 2 || packed.FromBytes != done.IndexBytes || packed.ContentBytes != done.ContentBytes {
			t.Errorf("limit %d: %+v of %+v", limit, packed, done)
		}
		o, err := Open(t.Context(), packed.Shards, 0)
		if err != nil || o.Shards != want || o.Repos != 2 {
			t.Errorf("limit %d: opened %+v (%v)", limit, o, err)
		}
	}
}

func sprint(list []string) string {
	text := ""
	for i, s := range list {
		if i > 0 {
			text += " "
		}
		text += s
	}
	return "[" + text + "]"
}

func TestOpenAndSections(t *testing.T) {
	done, err := Index(t.Context(), twoRepos(t), t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Open(t.Context(), done.Shards, 8)
	if err != nil || o.Shards != 8 || o.Repos != 16 || o.Heap <= 0 {
		t.Errorf("opened %+v (%v)", o, err)
	}
	sections, err := Sections(done.Shards)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, s := range sections {
		sum += s.Bytes
	}
	if sum == 0 || sum >= done.IndexBytes {
		t.Errorf("sections of %d bytes in shards of %d", sum, done.IndexBytes)
	}
	if _, err := Open(t.Context(), nil, 8); err == nil {
		t.Error("opened nothing")
	}
}
