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
			if string(d.Content) == "secret" || string(d.Path) == "link" && string(d.Content) != outside {
				t.Errorf("%q: read from outside: %q", d.Path, d.Content)
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
			"link": 0, "linked-dir": 0, "pipe": docstore.Unreadable,
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

// TestMarks: a byte order mark is not part of the text that is indexed, and UTF-16 with one is indexed in UTF-8.
func TestMarks(t *testing.T) {
	utf16le := func(text string) string {
		content := "\xff\xfe"
		for _, c := range []byte(text) {
			content += string([]byte{c, 0})
		}
		return content
	}
	dir := t.TempDir()
	for path, content := range map[string]string{
		"bom.py": "\xef\xbb\xbfdef f(): pass\n", "bom": "\xef\xbb\xbf#!/bin/sh\n", "le.rc": utf16le("pelican\r\n"), "le": utf16le("#!/bin/sh\n"), "be.txt": "\xfe\xff\x00a\x00b",
		"empty": "\xef\xbb\xbf", "nul": utf16le("a\x00b"), "unmarked": utf16le("abc")[2:], "grows": "\xff\xfe" + strings.Repeat("\x3a\x26", 40), "just": "\xef\xbb\xbf" + strings.Repeat("x", 97),
	} {
		write(t, dir, path, content)
	}
	f, err := OpenFolder(dir, Limits{MaxFileSize: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type document struct {
		content, language string
		skip              docstore.SkipReason
		size              int
	}
	want := map[string]document{
		"bom.py": {content: "def f(): pass\n", language: "Python", size: 14}, "bom": {content: "#!/bin/sh\n", language: "Shell", size: 10},
		"le.rc": {content: "pelican\r\n", size: 9}, "le": {content: "#!/bin/sh\n", language: "Shell", size: 10}, "be.txt": {content: "ab", language: "Text", size: 2},
		"empty": {}, "nul": {skip: docstore.Binary, size: 8}, "unmarked": {skip: docstore.Binary, size: 6}, "grows": {skip: docstore.TooLarge, size: 82}, "just": {content: strings.Repeat("x", 97), size: 97},
	}
	for _, d := range collect(t, f) {
		got := document{string(d.Content), d.Language, d.Skip, int(d.Size)}
		if want, ok := want[string(d.Path)]; !ok || got != want {
			t.Errorf("%s: %+v, want %+v", d.Path, got, want)
		}
		delete(want, string(d.Path))
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}
