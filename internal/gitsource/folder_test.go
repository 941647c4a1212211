package gitsource

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
)

func write(t testing.TB, dir, path, content string) {
	t.Helper()
	full := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	write(t, filepath.Dir(outside), "secret", "secret")
	deep := strings.Repeat("d/", 9) + "f.go"
	for path, content := range map[string]string{
		"a/x.go": "package a", "a.b": "text", "a-b": "text", "-dash": "x", "new\nline": "x", "empty": "",
		"bin": "a\x00b", "huge": strings.Repeat("x", 101), "just": strings.Repeat("x", 100),
		".git/config": "[core]", "sub/.git": "gitdir: x", "sub/f": "x", deep: "x", ".hidden": "x",
	} {
		write(t, dir, path, content)
	}
	os.Symlink(outside, filepath.Join(dir, "link"))
	os.Symlink(filepath.Dir(outside), filepath.Join(dir, "linked-dir"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir, Limits{MaxFileSize: 100, MaxDepth: 9})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 2 { // an enumeration leaves nothing behind for the next
		docs := collect(t, f)
		got := make(map[string]docstore.SkipReason)
		for _, d := range docs {
			got[string(d.Path)] = d.Skip
			if strings.Contains(string(d.Content), "secret") {
				t.Errorf("%q: read from outside", d.Path)
			}
			if string(d.Path) == "a/x.go" && (string(d.Content) != "package a" || d.Language != "Go" || d.Size != 9) {
				t.Errorf("a/x.go: %+v", d)
			}
			if got := names(f, d); got != "HEAD" {
				t.Errorf("%q: branches %v", d.Path, got)
			}
		}
		want := map[string]docstore.SkipReason{
			"a/x.go": 0, "a.b": 0, "a-b": 0, "-dash": 0, "new\nline": 0, "empty": 0, "bin": docstore.Binary,
			"huge": docstore.TooLarge, "just": 0, "sub/f": 0, deep: docstore.TooDeep, ".hidden": 0,
			"link": docstore.Symlink, "linked-dir": docstore.Symlink, "pipe": docstore.Unreadable,
		}
		for p, skip := range want {
			if s, ok := got[p]; !ok || s != skip {
				t.Errorf("%q: there %v, skipped as %v, want %v", p, ok, s, skip)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d documents, want %d: %v", len(got), len(want), got)
		}
		if !slices.IsSortedFunc(docs, func(a, b build.Document) int { return bytes.Compare(a.Path, b.Path) }) {
			t.Error("documents are not in path order")
		}
	}
}

func TestFolderLimits(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a", "1")
	write(t, dir, "b", "2")
	f, err := OpenFolder(dir, Limits{MaxDocuments: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var last error
	for _, err := range f.Documents(t.Context()) {
		last = err
	}
	if fail := (*Failure)(nil); !errors.As(last, &fail) || fail.Kind != TooLarge {
		t.Errorf("got %v", last)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range f.Documents(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := OpenFolder(filepath.Join(dir, "none"), Limits{}); err == nil {
		t.Error("a folder that is not there is opened")
	}
}

// TestFolderVeryDeep goes deeper than the kernel's limit on the length of a path.
func TestFolderVeryDeep(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("n", 200)
	for range 300 {
		if err := root.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		inner, err := root.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		root.Close()
		root = inner
	}
	root.Close()
	f, err := OpenFolder(dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	docs := collect(t, f)
	if len(docs) != 1 || docs[0].Skip != docstore.TooDeep {
		t.Errorf("%d documents: %v", len(docs), docs)
	}
}
