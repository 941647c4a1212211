package integration

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/testrun"
)

// commitFolder commits the files of a folder, and one more with a token, to the main branch of a bare repository, which it
// makes if needed. It returns the bytes of the files that are searched by content. It starts no git: tens of thousands of
// repositories would take longer to make than to index.
func commitFolder(repo, folder, token string) (texts int64, err error) {
	r := &rawRepo{dir: repo, texts: int64(len(token))}
	tree, err := r.tree(folder, treeItem{name: "drill.txt", mode: "100644", id: r.add("blob", []byte(token))})
	who := fmt.Sprintf("drill <d@example> %d +0000", time.Now().Unix())
	commit := r.add("commit", fmt.Appendf(nil, "tree %x\nauthor %s\ncommitter %s\n\n", tree, who, who))
	for _, f := range [][2]string{
		{"config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"}, {"HEAD", "ref: refs/heads/main\n"},
		{"refs/heads/main", fmt.Sprintf("%x\n", commit)},
	} {
		r.write(f[0], []byte(f[1]))
	}
	return r.texts, errors.Join(err, r.err)
}

// rawRepo writes the files of a Git repository. It keeps the first error.
type rawRepo struct {
	dir   string
	texts int64 // bytes without a zero byte among them
	err   error
}

type treeItem struct {
	name, mode string
	id         [sha1.Size]byte
}

func (r *rawRepo) write(name string, content []byte) {
	file := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, content, 0o600)); r.err == nil {
		r.err = err
	}
}

// add writes a loose object.
func (r *rawRepo) add(kind string, content []byte) [sha1.Size]byte {
	object := append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...)
	id := sha1.Sum(object)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err := z.Write(object)
	if err = errors.Join(err, z.Close()); r.err == nil {
		r.err = err
	}
	r.write(fmt.Sprintf("objects/%x/%x", id[:1], id[1:]), packed.Bytes())
	return id
}

// tree writes the tree of a folder with further items.
func (r *rawRepo) tree(folder string, items ...treeItem) (id [sha1.Size]byte, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return id, err
	}
	for _, e := range entries {
		item, path := treeItem{name: e.Name(), mode: "40000"}, filepath.Join(folder, e.Name())
		switch e.Type() {
		case fs.ModeDir:
			if item.id, err = r.tree(path); err != nil {
				return id, err
			}
		case 0:
			content, err := os.ReadFile(path)
			if err != nil {
				return id, err
			}
			if !bytes.Contains(content, []byte{0}) { // else it is found by name only
				r.texts += int64(len(content))
			}
			item.mode, item.id = "100644", r.add("blob", content)
		default:
			continue
		}
		items = append(items, item)
	}
	// Git sorts a folder as if its name ended with a slash.
	key := func(i treeItem) string { return i.name + strings.Repeat("/", 6-len(i.mode)) }
	slices.SortFunc(items, func(a, b treeItem) int { return cmp.Compare(key(a), key(b)) })
	var content []byte
	for _, i := range items {
		content = append(fmt.Appendf(content, "%s %s\x00", i.mode, i.name), i.id[:]...)
	}
	return r.add("tree", content), nil
}

// TestCommitFolder: git finds what commitFolder writes sound, and finds each file in it.
func TestCommitFolder(t *testing.T) {
	folder, repo := t.TempDir(), filepath.Join(t.TempDir(), "r.git")
	for name, content := range map[string]string{"a.txt": "text", "a/b": "in a folder", "a-b": "binary\x00", "z": ""} {
		file := filepath.Join(folder, name)
		testrun.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		testrun.Must(t, os.WriteFile(file, []byte(content), 0o600))
	}
	for _, token := range []string{"first\n", "second\n"} {
		texts, err := commitFolder(repo, folder, token)
		testrun.Must(t, err)
		if want := int64(len("text" + "in a folder" + token)); texts != want {
			t.Errorf("%d bytes of text, want %d", texts, want)
		}
		for _, args := range [][]string{{"fsck", "--strict", "--no-dangling"}, {"show", "main:drill.txt"}, {"ls-tree", "-r", "--name-only", "main"}} {
			out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo}, args...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("git %v: %v: %s", args, err, out)
			}
			if want := map[string]string{"show": token, "ls-tree": "a-b\na.txt\na/b\ndrill.txt\nz\n"}[args[0]]; want != "" && string(out) != want {
				t.Errorf("git %v: %q, want %q", args, out, want)
			}
		}
	}
}
