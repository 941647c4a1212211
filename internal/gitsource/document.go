package gitsource

import (
	"bytes"
	"context"
	"iter"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/gitsource/language"
)

// MaxPath bounds the bytes of a path that can be indexed at all. An entry with
// a longer one is left out and counted, see Source.Omitted.
const MaxPath = docstore.MaxPath

// Limits bound what is read. The zero value stands for the defaults, given at
// each field.
type Limits struct {
	// MaxFileSize is the most bytes of a searchable document (build.DefaultMaxFileSize, 32 MiB).
	MaxFileSize int64
	// MaxDepth is the most components of the path of one (128).
	MaxDepth int
	// MaxDocuments is the most documents of a source; one with more fails as
	// TooLarge (4,000,000). They take some 150 bytes of memory each.
	MaxDocuments int
}

func (l Limits) withDefaults() Limits {
	if l.MaxFileSize <= 0 {
		l.MaxFileSize = build.DefaultMaxFileSize
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = 128
	}
	if l.MaxDocuments <= 0 {
		l.MaxDocuments = 4_000_000
	}
	return l
}

// Document is one content at one path. Its slices are only valid until the
// next one is asked for, except Branches, which is shared and not to be changed.
type Document struct {
	// Path is relative, with slashes, in no particular encoding.
	Path []byte
	// Content is nil unless Skip is docstore.NotSkipped.
	Content []byte
	// Size is that of the content in bytes, also when it is skipped; of a
	// symbolic link that of its target's name, of a submodule 0.
	Size uint64
	// OID is the Git object's name, empty in a plain folder.
	OID []byte
	// Branches that have this content at this path, as ordinals into those of
	// the source, ascending.
	Branches []uint32
	// Language is linguist's name, "" when unknown.
	Language string
	Skip     docstore.SkipReason
}

// Source yields documents. It is for one goroutine.
type Source interface {
	// Branches of the documents, with their commits. A plain folder has one,
	// "HEAD", without a commit.
	Branches() []docstore.Branch
	// Documents yields every document once, in the order of their paths' bytes;
	// one path comes several times when branches differ there, in the order of
	// the objects' names. It ends after
	// the first error. What cannot be read by itself is no error but a document
	// with the reason in Skip.
	Documents(ctx context.Context) iter.Seq2[*Document, error]
	// Total is the number of documents, 0 when it is not known beforehand.
	Total() int
	// Omitted is the number of entries that Documents has left out so far, for
	// paths over MaxPath.
	Omitted() int
	// Close releases what the source holds.
	Close() error
}

// tooDeep says whether a path is over the limit of depth.
func (l Limits) tooDeep(path []byte) bool {
	return bytes.Count(path, []byte("/")) >= l.MaxDepth
}

// classify fills in what only the content tells.
func (d *Document) classify(content []byte, detector *language.Detector) {
	d.Size = uint64(len(content))
	if bytes.IndexByte(content, 0) >= 0 {
		d.Skip = docstore.Binary
		return
	}
	d.Content = content
	d.Language = detector.Detect(d.Path, content)
}
