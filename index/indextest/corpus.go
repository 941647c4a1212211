// Package indextest tests the engine. It has a brute-force oracle that says what a query must find,
// corpora that are hard for an index, queries of every kind sampled from them, and a comparison of
// an engine with the oracle.
//
// The oracle uses no n-grams, no shards and no tricks: it looks at every document on its own, by
// the simplest means. It is only as fast as the tests need.
package indextest

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
)

// Corpus is the text that queries search.
type Corpus struct {
	// Name says how to make the same corpus again; Check prints it.
	Name  string
	Repos []Repo
}

// Repo is a repo with the facts that queries can ask for. The first branch is HEAD.
type Repo struct {
	Name                   string
	Branches               []string
	Archived, Fork, Public bool
	Meta                   map[string]string
	Rank                   uint8
	// Documents are in order of path, then of content. Documents at the same path are on different
	// branches and differ in content.
	Documents []Document
}

// Document is one content at one path on some branches of a repo.
type Document struct {
	// Path may be invalid UTF-8. It has no NUL.
	Path string
	// Content is the searchable text; nil if Skipped. It has no NUL.
	Content []byte
	// Branches are some of the repo's branches, in its order; there is at least one.
	Branches []string
	// Language is the linguist name; empty if unknown.
	Language string
	// Skipped documents can be found only by their path and facts.
	Skipped bool
}

// Object returns the Git object id of the content. A skipped document has an id of its own.
func (d *Document) Object() []byte {
	content := d.Content
	if d.Skipped {
		content = fmt.Appendf(nil, "\x00%s\x00%q", d.Path, d.Branches)
	}
	return docstore.ObjectID(content, sha1.Size)
}

// sort sorts the repos and their documents.
func (c *Corpus) sort() {
	slices.SortFunc(c.Repos, func(a, b Repo) int { return cmp.Compare(a.Name, b.Name) })
	for _, r := range c.Repos {
		slices.SortFunc(r.Documents, func(a, b Document) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), bytes.Compare(a.Content, b.Content))
		})
	}
}

// languages has enough languages for queries to distinguish documents. They need not be correct to
// test an engine.
var languages = map[string]string{
	".c": "C", ".go": "Go", ".h": "C", ".md": "Markdown", ".py": "Python", ".s": "Assembly", ".txt": "Text",
}

func languageOf(path string) string { return languages[filepath.Ext(path)] }
