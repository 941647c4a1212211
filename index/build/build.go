// Package build writes shards.
//
// A Builder takes repos in order of name and the documents of each in order of path. It streams the
// shard out in one pass: content units leave as documents come in. The accumulators of the posting
// lists, the paths and a table of the blobs seen stay in memory until Close, all bounded by
// Options.MaxSourceBytes.
package build

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/symbols"
)

// ErrOrder is the error for a document that is out of order.
var ErrOrder = errors.New("documents are not in order of path and object id")

// Options bound what is indexed. The zero value means the defaults.
type Options struct {
	// MaxFileSize in bytes: larger documents are indexed by name only. Default 32 MiB.
	MaxFileSize int
	// MaxSourceBytes of content from which on Full returns true. Default 256 MiB.
	MaxSourceBytes int64
	// Effort to make the content small. Default docstore.Fresh.
	Effort docstore.Effort
	// Processors that share the work; with one, the caller does all of it. Default: all.
	Processors int
}

// Defaults of Options. Posting lists name superblocks, so a large file costs no more than the same
// bytes in small files. The limit on its size keeps memory and messages small.
const (
	DefaultMaxFileSize    = 32 << 20
	DefaultMaxSourceBytes = 256 << 20

	// leastMemory and mostMemory bound how many bytes of words and postings a shard collects before
	// it is full. For source code these take as much as its content, for random text several times
	// as much.
	leastMemory = 512 << 20
	mostMemory  = 1 << 30
)

func (o *Options) setDefaults() {
	if o.Processors <= 0 {
		o.Processors = runtime.GOMAXPROCS(0)
	}
	if o.MaxFileSize <= 0 {
		o.MaxFileSize = DefaultMaxFileSize
	}
	if o.MaxSourceBytes <= 0 {
		o.MaxSourceBytes = DefaultMaxSourceBytes
	}
}

// Document is one path of the repo that was added last.
type Document struct {
	Path []byte
	// Content is ignored when Skip is set. The caller may reuse it after Add has returned.
	Content []byte
	// Branches of the repo that hold the document, as ordinals, ascending.
	Branches []uint32
	// Language by its linguist name; empty when unknown.
	Language string
	// OID is the Git object id; when nil it is computed from Content.
	OID []byte
	// Skip says why the content must not be indexed.
	Skip docstore.SkipReason
	// Size in bytes, of a skipped document that of the file; len(Content) when 0.
	Size uint64
}

// Result describes a finished shard.
type Result struct {
	// Size of the shard in bytes, and its SHA-256.
	Size   int64
	SHA256 [32]byte
	// Repos counts all repos.
	Repos int
	// Documents counts all documents, Skipped those found by name only.
	Documents, Skipped uint64
	// Blobs counts distinct contents, ContentBytes their bytes.
	Blobs        uint64
	ContentBytes uint64
	// Languages of searchable documents, ascending.
	Languages []string
}

// Builder writes one shard. It is not safe for concurrent use. The caller must call Close, also
// after an error.
type Builder struct {
	opts      Options
	w         *format.Writer
	content   *docstore.ContentWriter
	docs      *docstore.DocsWriter
	collect   collector // its workspace is nil after Close
	maxMemory int64

	names  []byte            // all paths so far
	blobs  map[string]uint32 // by object id
	result Result
	langs  map[string]bool
	err    error

	lastPath, lastOID []byte // of the repo: its next document must come after these
}

// NewBuilder starts a shard on w. The caller closes w after Close.
func NewBuilder(w io.Writer, opts Options) (*Builder, error) {
	opts.setDefaults()
	b := &Builder{
		opts:  opts,
		w:     format.NewWriter(w),
		docs:  docstore.NewDocsWriter(),
		blobs: map[string]uint32{},
		langs: map[string]bool{},

		maxMemory: min(max(opts.MaxSourceBytes, leastMemory), mostMemory),
	}
	var err error
	if b.content, err = docstore.NewContentWriter(b.w, opts.Effort, opts.Processors); err != nil {
		return nil, fmt.Errorf("begin shard: %w", err)
	}
	ws := takeWorkspace()
	b.collect = collector{workspace: ws, processors: opts.Processors, filling: &ws.batches[0], busy: &ws.batches[1]}
	return b, nil
}

// AddRepo begins a repo; repos come in ascending order of name.
func (b *Builder) AddRepo(r docstore.Repo) error {
	if b.err != nil {
		return b.err
	}
	if err := b.docs.AddRepo(r); err != nil {
		return b.fail(fmt.Errorf("add repo %s: %w", r.Name, err))
	}
	b.result.Repos++
	b.lastPath, b.lastOID = b.lastPath[:0], b.lastOID[:0]
	return nil
}

// fail makes later calls return err too.
func (b *Builder) fail(err error) error {
	b.err = err
	return err
}

// Full reports whether the shard has its share of content, or has filled the memory for words and
// postings. The words and postings of the last contents, up to a megabyte, may not be counted yet.
func (b *Builder) Full() bool {
	return b.result.ContentBytes >= uint64(b.opts.MaxSourceBytes) ||
		b.collect.memory >= b.maxMemory
}

// Add adds a document of the repo that was added last. Documents come in ascending order of path
// and, at one path, of object id.
func (b *Builder) Add(d Document) error {
	if b.err != nil {
		return b.err
	}
	if err := b.add(d); err != nil {
		return b.fail(fmt.Errorf("add document %q: %w", d.Path, err))
	}
	return nil
}

func (b *Builder) add(d Document) error {
	if d.Size == 0 {
		d.Size = uint64(len(d.Content))
	}
	if d.OID == nil {
		d.OID = docstore.ObjectID(d.Content, sha1.Size)
	}
	if c := bytes.Compare(d.Path, b.lastPath); c < 0 || c == 0 && bytes.Compare(d.OID, b.lastOID) <= 0 {
		return ErrOrder
	}
	b.lastPath, b.lastOID = append(b.lastPath[:0], d.Path...), append(b.lastOID[:0], d.OID...)
	if d.Skip == docstore.NotSkipped {
		d.Skip = ContentSkip(d.Content, b.opts.MaxFileSize)
	}
	blob, skip, err := b.blob(d)
	if err != nil {
		return err
	}
	b.result.Documents++
	if skip != docstore.NotSkipped {
		b.result.Skipped++
	} else if d.Language != "" {
		b.langs[d.Language] = true
	}
	b.names = append(b.names, d.Path...)
	return b.docs.AddDocument(docstore.Document{
		Path: d.Path, Blob: blob, Branches: d.Branches, Language: d.Language, Skip: skip, Size: d.Size, OID: d.OID,
	})
}

// ContentSkip returns why content is not searchable: it has more than maxFileSize bytes, or is
// binary, that is, contains a NUL byte.
func ContentSkip(content []byte, maxFileSize int) docstore.SkipReason {
	switch {
	case len(content) > maxFileSize:
		return docstore.TooLarge
	case bytes.IndexByte(content, 0) >= 0:
		return docstore.Binary
	}
	return docstore.NotSkipped
}

// blob returns the number of the document's blob, which it adds if it is new. A skipped document
// has an empty blob of its own.
func (b *Builder) blob(d Document) (blob uint32, skip docstore.SkipReason, err error) {
	if d.Skip != docstore.NotSkipped {
		blob, err = b.store(nil, nil)
		return blob, d.Skip, err
	}
	if blob, ok := b.blobs[string(d.OID)]; ok {
		return blob, docstore.NotSkipped, nil
	}
	if blob, err = b.store(d.Content, symbols.For(d.Language)); err != nil {
		return 0, 0, err
	}
	b.blobs[string(d.OID)] = blob
	b.result.Blobs++
	b.result.ContentBytes += uint64(len(d.Content))
	return blob, docstore.NotSkipped, nil
}

// store writes a blob and collects its words and n-grams. The language of its first document
// decides which definitions it has.
func (b *Builder) store(content []byte, language *symbols.Language) (blob uint32, err error) {
	first, err := b.content.Add(content)
	if err != nil {
		return 0, err
	}
	return b.content.Blobs() - 1, b.collect.add(first, content, language)
}
