package corpus

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGitHoldsTheFiles: each file is unchanged, whatever the repository's own files say
// about it.
func TestGitHoldsTheFiles(t *testing.T) {
	files := map[string]string{
		"a.go": "x\n", "empty": "", "dir/no newline": "end", "dir/\"q\"\n.txt": "odd", "win.txt": "a\r\nb\r\n",
		".gitignore": "*.go\n", ".gitattributes": "* text=auto eol=lf\n", "bin": "\x00\xff",
	}
	r := Repo{"r", t.TempDir()}
	for name, text := range files {
		path := filepath.Join(r.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.go", filepath.Join(r.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "r.git")
	if err := r.Git(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	for name, text := range files {
		if got := git("cat-file", "blob", "HEAD:"+name); got != text {
			t.Errorf("%q holds %q, not %q", name, got, text)
		}
	}
	if got := strings.Count(git("ls-tree", "-r", "--name-only", "-z", "HEAD"), "\x00"); got != len(files) {
		t.Errorf("%d files, not %d", got, len(files))
	}
	if got := git("rev-list", "--count", "HEAD"); got != "1\n" {
		t.Errorf("%s commits", got)
	}
	if err := (Repo{"none", filepath.Join(r.Dir, "none")}).Git(t.Context(), filepath.Join(t.TempDir(), "none.git")); err == nil {
		t.Error("a folder that is not there was written")
	}
}
