package gitsource

import (
	"bytes"
	"context"
	"iter"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/gitsource/language"
)

// MaxPath bounds the bytes of an indexed path. Entries with longer paths are left
// out and counted by Source.Omitted.
const MaxPath = docstore.MaxPath

// Limits bound what a source reads. A field that is zero has the default in
// parentheses.
type Limits struct {
	// MaxFileSize bounds the bytes of a searchable document (build.DefaultMaxFileSize,
	// 32 MiB). It is checked before content is read; build.ContentSkip has the rules
	// for content.
	MaxFileSize int64
	// MaxDepth bounds the components of a searchable document's path (DefaultMaxDepth).
	MaxDepth int
	// MaxDocuments bounds the documents of a source (4,000,000); each takes some 150
	// bytes of memory. A source with more fails as TooLarge.
	MaxDocuments int
}

// DefaultMaxDepth is deeper than any path of source code that was seen.
const DefaultMaxDepth = 128

func (l Limits) withDefaults() Limits {
	if l.MaxFileSize <= 0 {
		l.MaxFileSize = build.DefaultMaxFileSize
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = DefaultMaxDepth
	}
	if l.MaxDocuments <= 0 {
		l.MaxDocuments = 4_000_000
	}
	return l
}

// Source yields documents. It is for one goroutine.
type Source interface {
	// Branches returns the branches of the documents, with their commits. A plain
	// folder has one branch, "HEAD", without a commit.
	Branches() []docstore.Branch
	// Documents yields every document once, in the order of their paths' bytes. A
	// path whose content differs between branches comes once for each content, in
	// the order of object ids. A document whose content cannot be read has the
	// reason in Skip. The iteration ends after the first error.
	//
	// A document is valid until the next one is asked for. Its Branches are ordinals
	// into those of the source; they are shared and must not be changed. Content is
	// the text of the file (build.Text), nil unless Skip is docstore.NotSkipped. Size is
	// that of the text; of a skipped file, that of the file. The content of a symbolic link is its
	// target, which is not followed; a submodule has size 0. OID is empty in a plain folder.
	Documents(ctx context.Context) iter.Seq2[*build.Document, error]
	// Total returns the number of documents, 0 if it is not known beforehand.
	Total() int
	// Omitted returns the number of entries that were left out so far because their
	// paths exceed MaxPath.
	Omitted() int
	// Close releases the source's resources.
	Close() error
}

// tooDeep reports whether a path has more components than MaxDepth.
func (l Limits) tooDeep(path []byte) bool {
	return bytes.Count(path, []byte("/")) >= l.MaxDepth
}

// classify completes a document by its content, whose text may turn out to be unsearchable.
func classify(d *build.Document, content []byte, limits Limits, detector *language.Detector) {
	d.Size = uint64(len(content))
	text := build.Text(content)
	if d.Skip = build.ContentSkip(text, int(limits.MaxFileSize)); d.Skip != docstore.NotSkipped {
		return
	}
	d.Content, d.Size = text, uint64(len(text))
	d.Language = detector.Detect(d.Path, text)
}
