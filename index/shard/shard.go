// Package shard opens and searches shards.
//
// A Shard is a memory-mapped file. Opening one reads its footer and table of contents. Searching
// one decodes the posting lists and content units that the query needs. The heap holds nothing per
// document or per n-gram.
package shard

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inverted"
)

// ErrNoFile is the error of File for a document that the shard does not hold.
var ErrNoFile = errors.New("no such file")

// Shard is an open shard. It is safe for concurrent use, but not after Close.
type Shard struct {
	file    *format.File
	docs    *docstore.Docs
	content *docstore.Content
	text    *inverted.Index // of the content
	names   *inverted.Index // of the concatenated paths
	words   *inverted.Words // of the content
	// otherwise are the blobs of otherwiseMarked, once found.
	otherwise atomic.Pointer[[]uint32]
}

// Open maps the shard file at path. A file that is not an intact shard gives format.ErrCorrupt or
// format.ErrVersion. Damage deeper inside is found by the search that reads it, or by Verify.
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

func (s *Shard) open(f *format.File) (err error) {
	announceHeads(f)
	if s.docs, err = docstore.OpenDocs(f); err != nil {
		return err
	}
	if s.content, err = docstore.OpenContent(f); err != nil {
		return err
	}
	if s.text, err = inverted.Open(f, inverted.ContentTags); err != nil {
		return err
	}
	if s.names, err = inverted.Open(f, inverted.NameTags); err != nil {
		return err
	}
	if s.words, err = inverted.OpenWords(f); err != nil {
		return err
	}
	if s.words.Superblocks() != s.content.Superblocks() || s.words.Blobs() != s.content.Blobs() {
		return s.words.Corruptf("words of %d superblocks in %d blobs, of a content of %d in %d",
			s.words.Superblocks(), s.words.Blobs(), s.content.Superblocks(), s.content.Blobs())
	}
	return nil
}

// Close unmaps the file. No search may be running.
func (s *Shard) Close() error { return s.file.Close() }

// Name returns the name of the shard's file.
func (s *Shard) Name() string { return s.file.Name() }

// Size returns the size of the shard's file in bytes.
func (s *Shard) Size() int64 { return s.file.Size() }

// Documents returns the number of documents.
func (s *Shard) Documents() int { return int(s.docs.Len()) }

// ContentBytes returns the size of the searchable content, with identical blobs counted once.
func (s *Shard) ContentBytes() uint64 { return s.content.Bytes() }
