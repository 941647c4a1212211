package gitsource

import (
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
)

// TestLargeDocuments: by default the content of files up to the builder's limit is
// read in full, from a packed repository with deltas and from a folder.
func TestLargeDocuments(t *testing.T) {
	line := "a line of a large table, as it stands in many repositories\n"
	text := strings.Repeat(line, 20<<20/len(line))
	limit := text + strings.Repeat("\n", build.DefaultMaxFileSize-len(text))
	files := map[string]string{"text": text, "limit": limit, "over": limit + "\n", "small": "x\n"}

	r := gitsourcetest.New(t)
	r.Files("main", "text", text, "limit", limit, "over", limit+"\n", "small", "x\n")
	r.Git("repack", "-a", "-d", "-q", "--window=2")
	dir := t.TempDir()
	for path, content := range files {
		write(t, dir, path, content)
	}
	folder, err := OpenFolder(dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for name, src := range map[string]Source{"repository": openRepository(t, r.Dir, Limits{}), "folder": folder} {
		seen := 0
		for doc, err := range src.Documents(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			seen++
			want, skip := files[string(doc.Path)], docstore.NotSkipped
			size := len(want)
			if size > build.DefaultMaxFileSize {
				want, skip = "", docstore.TooLarge
			}
			if string(doc.Content) != want || doc.Skip != skip || doc.Size != uint64(size) {
				t.Errorf("%s: %s has %d bytes of %d, skipped as %v, want %v", name, doc.Path, len(doc.Content), doc.Size, doc.Skip, skip)
			}
		}
		if seen != len(files) {
			t.Errorf("%s: %d documents", name, seen)
		}
	}
}
