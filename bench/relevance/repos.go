package relevance

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trawl-search/trawl/bench/corpus"
)

// pinned is a repo whose queries and files are those of one commit.
type pinned struct{ name, url, commit string }

// pins are the repos: figures of other commits do not compare.
var pins = []pinned{
	{"core", "https://github.com/vuejs/core", "e2bede96134f757aad5c5b33ac9be055022dbfc8"},
	{"etcd", "https://github.com/etcd-io/etcd", "c34dc7ee0048fd2bcc44d50beff002e5e8069b69"},
	{"express", "https://github.com/expressjs/express", "a3714473feb3d2908add734d340e7755fd85e0a3"},
	{"flask", "https://github.com/pallets/flask", "2ac89889f4cc330eabd50f295dcef02828522c69"},
	{"gson", "https://github.com/google/gson", "9835b6f90192f79cdf5300c528fc6212455fb6c1"},
	{"prometheus", "https://github.com/prometheus/prometheus", "d15adb9ad7e5d9fbde3a9a8f30200593a5a14d86"},
	{"redis", "https://github.com/redis/redis", "4f8cdc2a1ea53e42955af758aabffee67cb455dd"},
	{"ripgrep", "https://github.com/BurntSushi/ripgrep", "3fce3b5bb0236da2df6d99672afb8a719642eca7"},
	{"rocksdb", "https://github.com/facebook/rocksdb", "1dfa7297933df05237ac11376d6cb69d32591b1d"},
	{"tokio", "https://github.com/tokio-rs/tokio", "ea91b33ca57ff0581b38e735cc108f831bccbdaa"},
	{"zoekt", "https://github.com/sourcegraph/zoekt", "c4d8f3537f7a67423835d8cf6b0e1d13e68e0b4c"},
}

// maxFile is the largest file that queries are made from.
const maxFile = 1 << 20

// file is one that queries are made from.
type file struct {
	repo, path string
	text       string
	lower      string // path and text
	ext        string
	aside      bool // a test, an example or not the project's own
}

func (f *file) name() string { return f.repo + "/" + f.path }

// commit is a change of one file that is not aside.
type commit struct {
	subject string
	file    *file
}

// git runs git on a repository, which may be bare.
func git(ctx context.Context, dir string, env []string, in io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env, cmd.Stdin = append(os.Environ(), env...), in
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running git %s in %s: %w: %s", args[0], dir, err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}

// maxExported is the size from which on files are left out: a copy of a repository may lack its largest ones.
const maxExported = 4 << 20

// export writes the files of a commit into a folder.
func (p pinned) export(ctx context.Context, repo, dir string) error {
	index := []string{"GIT_INDEX_FILE=" + dir + ".index"}
	if _, err := git(ctx, repo, index, nil, "read-tree", p.commit); err != nil {
		return err
	}
	listed, err := git(ctx, repo, nil, nil, "ls-tree", "-r", "-l", "-z", p.commit)
	if err != nil {
		return err
	}
	var paths bytes.Buffer
	for entry := range bytes.SplitSeq(listed, []byte{0}) {
		about, path, _ := bytes.Cut(entry, []byte("\t"))
		fields := strings.Fields(string(about)) // mode, type, object and size, which is no number where there is no such object
		if len(fields) < 4 {
			continue
		}
		if size, err := strconv.Atoi(fields[3]); err == nil && size < maxExported {
			paths.Write(append(path, 0))
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("making a folder for %s: %w", p.name, err)
	}
	_, err = git(ctx, repo, index, &paths, "--work-tree="+dir, "checkout-index", "-z", "--stdin", "--prefix="+dir+"/")
	return err
}

// isSource reports whether queries about files are made from a file with that extension.
func isSource(ext string) bool { return languages[ext] != nil }

// readFiles reads what queries are made from: files with wanted extensions, in order of path.
func readFiles(r corpus.Repo, wanted func(ext string) bool) (files []*file, err error) {
	err = filepath.WalkDir(r.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		ext := filepath.Ext(path)
		if !wanted(ext) {
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxFile {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, r.Dir+string(filepath.Separator)))
		files = append(files, &file{
			repo: r.Name, path: name, text: string(text), lower: strings.ToLower(name + "\n" + string(text)),
			ext: ext, aside: asidePath.MatchString(name),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.Dir, err)
	}
	slices.SortFunc(files, func(a, b *file) int { return cmp.Compare(a.path, b.path) })
	return files, nil
}

// maxCommits bounds how far back commits are read.
const maxCommits = 4000

// readCommits reads the changes of exactly one file that is there and not aside, the latest first.
// Changes of files that are aside beside it are no matter.
func (p pinned) readCommits(ctx context.Context, repo string, files []*file) (commits []commit, err error) {
	out, err := git(ctx, repo, nil, nil, "log", "--no-merges", "--no-renames", "--name-only", "--format=%x00%s", fmt.Sprintf("--max-count=%d", maxCommits), p.commit)
	if err != nil {
		return nil, err
	}
	byPath := make(map[string]*file, len(files))
	for _, f := range files {
		byPath[f.path] = f
	}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		lines := strings.Split(strings.TrimSpace(entry), "\n")
		var of *file
		changed := 0
		for _, path := range lines[1:] {
			if f := byPath[path]; path != "" && !asidePath.MatchString(path) {
				of = f
				changed++
			}
		}
		if changed == 1 && of != nil {
			commits = append(commits, commit{lines[0], of})
		}
	}
	return commits, nil
}

// errMissing is the error where a repo is not there.
var errMissing = errors.New("clone it there, bare or not")
