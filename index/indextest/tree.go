package indextest

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFileSize is the size above which the content of a file is skipped.
const maxFileSize = 32 << 20

// Tree is a folder from which corpora are made.
type Tree struct {
	dir   string
	paths []string // of its files, relative and sorted
	sizes []int64
	// Bytes is the total size of the files.
	Bytes int64
}

// OpenTree lists the regular files below dir, without hidden folders.
func OpenTree(dir string) (*Tree, error) {
	t := &Tree{dir: dir}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		t.paths, t.sizes, t.Bytes = append(t.paths, name), append(t.sizes, info.Size()), t.Bytes+info.Size()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the files in %s: %w", dir, err)
	}
	return t, nil
}

// FromFolder makes a corpus of one repo with one branch from the regular files below dir, without
// hidden folders. Files above 32 MiB and those with a NUL byte are skipped documents.
func FromFolder(dir string) (*Corpus, error) {
	t, err := OpenTree(dir)
	if err != nil {
		return nil, err
	}
	return t.all()
}

func (t *Tree) all() (*Corpus, error) {
	all := make([]int, len(t.paths))
	for i := range all {
		all[i] = i
	}
	return t.corpus("folder "+t.dir, [][]int{all})
}

// Part makes a corpus of files with about size bytes in total: half of them are adjacent in the
// tree, the others anywhere. No file is larger than size. They are in up to three repos. The same
// seed gives the same part of the same files.
func (t *Tree) Part(seed uint64, size int64) (*Corpus, error) {
	rng := rand.New(rand.NewPCG(seed, 5))
	repos := make([][]int, 1+rng.IntN(3))
	taken, most := map[int]bool{}, size // already taken, or too large
	take := func(i int) {
		if taken[i] {
			return
		}
		taken[i] = true
		if t.sizes[i] <= most {
			to := rng.IntN(len(repos))
			repos[to] = append(repos[to], i)
			size -= t.sizes[i] + 1
		}
	}
	if len(t.paths) > 0 {
		half := size / 2
		for i := rng.IntN(len(t.paths)); size > half && len(taken) < len(t.paths); i++ {
			take(i % len(t.paths))
		}
		for size > 0 && len(taken) < len(t.paths) {
			take(rng.IntN(len(t.paths)))
		}
	}
	return t.corpus(fmt.Sprintf("part %d of folder %s", seed, t.dir), repos)
}

// corpus reads files into repos.
func (t *Tree) corpus(name string, repos [][]int) (*Corpus, error) {
	c := &Corpus{Name: name}
	for i, files := range repos {
		r := Repo{Name: "local/" + filepath.Base(t.dir), Branches: []string{"main"}, Public: true}
		if i > 0 {
			r.Name, r.Archived = fmt.Sprintf("%s%d", r.Name, i+1), i == 2
		}
		slices.Sort(files)
		for _, f := range files {
			content, err := os.ReadFile(filepath.Join(t.dir, t.paths[f]))
			if err != nil {
				return nil, fmt.Errorf("reading the corpus in %s: %w", t.dir, err)
			}
			r.Documents = append(r.Documents, readDocument(filepath.ToSlash(t.paths[f]), content, r.Branches))
		}
		c.Repos = append(c.Repos, r)
	}
	c.sort()
	return c, nil
}

func readDocument(path string, content []byte, branches []string) Document {
	d := Document{Path: path, Content: content, Branches: branches, Language: languageOf(path)}
	if len(content) > maxFileSize || bytes.IndexByte(content, 0) >= 0 {
		d.Content, d.Skipped = nil, true
	}
	return d
}
