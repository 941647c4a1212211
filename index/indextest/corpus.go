// Package indextest judges the engine. It has a brute-force oracle that says
// what a query must find, corpora that are hard on an index, queries of every
// kind sampled from them, and a comparison of an engine with the oracle.
//
// The oracle knows no n-grams, no shards and no tricks: it looks at every
// document, by itself, with the plainest means. It is only as fast as a test
// needs.
package indextest

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Corpus is what a query is run over.
type Corpus struct {
	// Name says how to get the same corpus again; Check prints it.
	Name  string
	Repos []Repo
}

// Repo is a repo with the facts that queries can ask for. The first of its
// branches is HEAD.
type Repo struct {
	Name                   string
	Branches               []string
	Archived, Fork, Public bool
	Meta                   map[string]string
	// Documents in order of path, then of content. Several at one path are on
	// different branches and differ in content.
	Documents []Document
}

// Document is one content at one path on some branches of a repo.
type Document struct {
	// Path need not be UTF-8. It holds no NUL.
	Path string
	// Content is what is searched; nil if Skipped. It holds no NUL unless Skipped.
	Content []byte
	// Branches are some of the repo's, in its order, at least one.
	Branches []string
	// Language by its linguist name; empty when unknown.
	Language string
	// Skipped documents are found by their path and facts only.
	Skipped bool
}

// sort brings the repos and their documents into order.
func (c *Corpus) sort() {
	slices.SortFunc(c.Repos, func(a, b Repo) int { return cmp.Compare(a.Name, b.Name) })
	for _, r := range c.Repos {
		slices.SortFunc(r.Documents, func(a, b Document) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), bytes.Compare(a.Content, b.Content))
		})
	}
}

// maxFileSize is the size above which FromFolder skips the content of a file.
const maxFileSize = 2 << 20

// FromFolder makes a corpus of one repo, on one branch, of the regular files
// below dir. Files above 2 MiB and those with a NUL byte are skipped documents.
// Hidden folders are left out.
func FromFolder(dir string) (*Corpus, error) {
	repo := Repo{Name: "local/" + filepath.Base(dir), Branches: []string{"main"}, Public: true}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		repo.Documents = append(repo.Documents, newDocument(filepath.ToSlash(name), content, repo.Branches))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the corpus in %s: %w", dir, err)
	}
	c := &Corpus{Name: "folder " + dir, Repos: []Repo{repo}}
	c.sort()
	return c, nil
}

func newDocument(path string, content []byte, branches []string) Document {
	d := Document{Path: path, Content: content, Branches: branches, Language: languageOf(path)}
	if len(content) > maxFileSize || bytes.IndexByte(content, 0) >= 0 {
		d.Content, d.Skipped = nil, true
	}
	return d
}

// languages are enough of them for queries to tell documents apart; to judge an
// engine they need not be right.
var languages = map[string]string{
	".c": "C", ".go": "Go", ".h": "C", ".md": "Markdown", ".py": "Python", ".s": "Assembly", ".txt": "Text",
}

func languageOf(path string) string { return languages[filepath.Ext(path)] }
