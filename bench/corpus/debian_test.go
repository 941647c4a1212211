package corpus

import (
	"archive/zip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// archives makes a zip and a folder with one file each, and returns their folder.
func archives(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "tree", "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "tree", "sub", "x"), []byte("tree"), 0o666); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(root, "src-1.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := zip.NewWriter(file)
	for _, name := range names {
		part, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte("zip " + name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestUnpack(t *testing.T) {
	root := archives(t, "a.java", "dir/b.java")
	tar := exec.CommandContext(t.Context(), "tar", "-cJf", "one.tar.xz", "tree")
	tar.Dir = root
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for pattern, want := range map[string]map[string]string{
		"src-*.zip":  {"a.java": "zip a.java", "dir/b.java": "zip dir/b.java"},
		"tre*":       {"sub/x": "tree"},
		"one.tar.xz": {"sub/x": "tree"}, // without the folder that all of it is in
	} {
		p := piece{"no-such-package", filepath.Join(root, pattern), "here"}
		to := filepath.Join(t.TempDir(), "in", p.folder)
		if err := p.unpack(t.Context(), t.TempDir(), to); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		for name, text := range want {
			if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != text {
				t.Errorf("%s: %s holds %q (%v)", pattern, name, got, err)
			}
		}
	}
	if _, err := (piece{pattern: "nothing*"}).find(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a package that is not there: %v", err)
	}
}

// TestUnzipStaysInItsFolder: no name in an archive writes outside of the folder.
func TestUnzipStaysInItsFolder(t *testing.T) {
	root := archives(t, "../out.java")
	to := filepath.Join(root, "to")
	if err := os.Mkdir(to, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := unzip(filepath.Join(root, "src-1.zip"), to); err == nil {
		t.Error("unpacked above its folder")
	}
	if _, err := os.Stat(filepath.Join(root, "out.java")); err == nil {
		t.Error("a file stands above the folder")
	}
}

// TestTreesAreUnpackedOnce: a tree under its name is complete and is not unpacked
// again.
func TestTreesAreUnpackedOnce(t *testing.T) {
	cache := t.TempDir()
	trees["test"] = []piece{{"none", filepath.Join(archives(t), "tree"), "part"}}
	defer delete(trees, "test")
	for range 2 {
		repos, err := debian(t.Context(), "test", cache)
		if err != nil || len(repos) != 1 || repos[0] != (Repo{"test", filepath.Join(cache, "test")}) {
			t.Fatal(repos, err)
		}
		if _, err := os.Stat(filepath.Join(repos[0].Dir, "part", "sub", "x")); err != nil {
			t.Error(err)
		}
		trees["test"] = []piece{{"none", "/no/such/file", ""}} // not needed again
	}
	left, err := filepath.Glob(filepath.Join(cache, "*unfinished*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
