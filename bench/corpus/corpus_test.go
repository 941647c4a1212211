package corpus

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestModulesInCache(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{
		"example.com/b@v1.0.0/inner@odd", "example.com/a@v1.2.0", "example.com/b/sub@v2.0.0", "cache/download/x@v1",
		"k8s.io/kubernetes@v1.36.3",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	want := []Repo{
		{"example.com/a@v1.2.0", filepath.Join(root, "example.com/a@v1.2.0")},
		{"example.com/b/sub@v2.0.0", filepath.Join(root, "example.com/b/sub@v2.0.0")},
		{"example.com/b@v1.0.0", filepath.Join(root, "example.com/b@v1.0.0")},
	}
	got, err := modulesIn(root, 0)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v (%v)", got, want, err)
	}
	if got, err = modulesIn(root, 1); err != nil || !slices.Equal(got, want[:1]) {
		t.Errorf("got %v, want %v (%v)", got, want[:1], err)
	}
}

// TestLabel: corpora of one name and different sizes have different labels.
func TestLabel(t *testing.T) {
	for n, want := range map[int]string{0: "x", 1: "x", 2: "x, 2 repos", 1000: "x, 1000 repos"} {
		c := Corpus{Name: "x", Repos: make([]Repo, n)}
		if got := c.Label(); got != want {
			t.Errorf("%d repos: %q, not %q", n, got, want)
		}
	}
}

func TestUnknownCorpus(t *testing.T) {
	if _, err := Find(t.Context(), "rust", t.TempDir(), 0); err == nil {
		t.Error("found a corpus that does not exist")
	}
}

func TestGoTree(t *testing.T) {
	c, err := Find(t.Context(), "go", t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.Repos[0].Dir, "fmt", "print.go")); err != nil {
		t.Error(err)
	}
}
