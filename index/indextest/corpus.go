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
	"crypto/sha1"
	"fmt"
	"path/filepath"
	"slices"
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

// Object is the Git object id of the content. A skipped document has one of its own.
func (d *Document) Object() []byte {
	content := d.Content
	if d.Skipped {
		content = fmt.Appendf(nil, "\x00%s\x00%q", d.Path, d.Branches)
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return h.Sum(nil)
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

// languages are enough of them for queries to tell documents apart; to judge an
// engine they need not be right.
var languages = map[string]string{
	".c": "C", ".go": "Go", ".h": "C", ".md": "Markdown", ".py": "Python", ".s": "Assembly", ".txt": "Text",
}

func languageOf(path string) string { return languages[filepath.Ext(path)] }
