package gitsourcetest_test

import (
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
)

// TestBlobIsWhatGitWrites stores contents with and without git.
func TestBlobIsWhatGitWrites(t *testing.T) {
	for _, r := range []*gitsourcetest.Repo{gitsourcetest.New(t), gitsourcetest.NewSHA256(t)} {
		for _, content := range []string{"", "a\n", "\x00\xff", strings.Repeat("long ", 100_000), "a\n"} {
			name := r.Blob(content)
			if want := r.GitIn(content, "hash-object", "--stdin"); name != want {
				t.Errorf("%.10q is named %s, want %s", content, name, want)
			}
			if got := r.Git("cat-file", "blob", name); got != strings.TrimSuffix(content, "\n") {
				t.Errorf("%.10q is stored as %.10q", content, got)
			}
		}
		r.Git("fsck", "--strict")
	}
}
