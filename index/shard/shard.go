// Package shard opens, verifies and describes shards. Package search searches them.
//
// A Shard is a memory-mapped file. Opening one reads its footer and table of contents. The heap
// holds nothing per document or per n-gram.
package shard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/merge"
)

// Shard is an open shard. It is safe for concurrent use, but not after Close. Its parts must not be
// replaced, and must be read under Guard.
type Shard struct {
	Docs    *docstore.Docs
	Content *docstore.Content
	Text    *inverted.Index // of the content
	Names   *inverted.Index // of the concatenated paths
	Words   *inverted.Words // of the content

	file *format.File
	// otherwise are the blobs of OtherwiseMarked, once found.
	otherwise atomic.Pointer[[]uint32]
}

// Open maps the shard file at path. A file that is not an intact shard gives format.ErrCorrupt or
// format.ErrVersion. Damage deeper inside is found by who reads it, or by Verify.
func Open(path string) (*Shard, error) {
	f, err := format.OpenFile(path)
	if err != nil {
		return nil, err // it says that the shard cannot be opened, and which one
	}
	s, err := OpenFile(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// OpenFile opens the shard in f. Close closes f.
func OpenFile(f *format.File) (*Shard, error) {
	s := &Shard{file: f}
	err := f.Guard(func() error { return s.open(f) })
	if err != nil {
		return nil, fmt.Errorf("open shard: %w", err)
	}
	return s, nil
}

// headBytes is the most that opening a shard reads of the start of a section.
const headBytes = 32

func (s *Shard) open(f *format.File) (err error) {
	f.AnnounceHeads(headBytes, format.TagDocsInfo, format.TagContentInfo, format.TagWordInfo, format.TagNames, format.TagUnits,
		format.TagNgrams, format.TagNameNgrams, format.TagLexiconNgrams, format.TagWordTable, format.TagDefinitions)
	if s.Docs, err = docstore.OpenDocs(f); err != nil {
		return err
	}
	if s.Content, err = docstore.OpenContent(f); err != nil {
		return err
	}
	if s.Text, err = inverted.Open(f, inverted.ContentTags); err != nil {
		return err
	}
	if s.Names, err = inverted.Open(f, inverted.NameTags); err != nil {
		return err
	}
	if s.Words, err = inverted.OpenWords(f); err != nil {
		return err
	}
	if words, content := s.Words.Superblocks(), s.Content.Superblocks(); words != content {
		return s.Words.Corruptf("words of %d superblocks, of a content of %d", words, content)
	}
	return nil
}

// Close unmaps the file. Nobody may be reading it.
func (s *Shard) Close() error { return s.file.Close() }

// Guard runs f, which reads the shard. A fault of the mapping becomes an error.
func (s *Shard) Guard(f func() error) error { return s.file.Guard(f) }

// Verify reads the whole shard: every checksum, and every section, which must be what its documents make up. It returns the first fault,
// which is format.ErrCorrupt, or the context's error. It needs room for another such shard in a temporary file.
func (s *Shard) Verify(ctx context.Context) error {
	if err := s.file.Verify(ctx); err != nil {
		return fmt.Errorf("verify shard: %w", err)
	}
	return merge.Verify(ctx, s.file)
}

// Recheck checks bytes again that were found to be sound when they were first read; see
// format.File.Recheck.
func (s *Shard) Recheck(from int64) (next, read int64, err error) { return s.file.Recheck(from) }

// Name returns the name of the shard's file.
func (s *Shard) Name() string { return s.file.Name() }

// Size returns the size of the shard's file in bytes.
func (s *Shard) Size() int64 { return s.file.Size() }

// Documents returns the number of documents.
func (s *Shard) Documents() int { return int(s.Docs.Len()) }

// ContentBytes returns the size of the searchable content, with identical blobs counted once.
func (s *Shard) ContentBytes() uint64 { return s.Content.Bytes() }

// Corruptf returns the error for documents that contradict each other.
func (s *Shard) Corruptf(reason string, args ...any) error {
	return s.file.Corruptf(reason, args...)
}
