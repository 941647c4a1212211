package corpus

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLeaves: the pieces are the folders with files and without folders, none
// within another, in order of name.
func TestLeaves(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{
		"tree/top.go", "tree/b/inner/x.go", "tree/b/beside.go", "tree/a/x.go", "tree/a/y.go",
		"cache/m@v1/x.go", "modules/m@v1/x.go", "modules/cache/m@v1/x.go",
	} {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("text"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "tree", "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	roots := []Repo{{"tree", filepath.Join(root, "tree")}, {"modules", filepath.Join(root, "modules")}}
	want := []Repo{
		{"modules/m@v1", filepath.Join(root, "modules/m@v1")},
		{"tree/a", filepath.Join(root, "tree/a")},
		{"tree/b/inner", filepath.Join(root, "tree/b/inner")},
	}
	for limit, want := range [][]Repo{want, want[:1], want[:2], want, want} {
		if got, err := leaves(limit, roots...); err != nil || !slices.Equal(got, want) {
			t.Errorf("limit %d: got %v, want %v (%v)", limit, got, want, err)
		}
	}
	if _, err := leaves(0, Repo{"none", filepath.Join(root, "none")}); err == nil {
		t.Error("a folder that is not there was cut")
	}
}
