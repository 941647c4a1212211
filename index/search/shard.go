// Package search finds, counts, lists and shows the documents of a shard that a query matches, the
// best of them first.
//
// A search decodes the posting lists and content units that the query needs. Read find.go first: it
// has the loop. docs/architecture.md says in a page how a query becomes the best files.
package search

import (
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/shard"
)

// Shard is an open shard that can be searched. It is safe for concurrent use, but not after Close.
type Shard struct{ *shard.Shard }

// Open opens the shard file at path, as shard.Open does.
func Open(path string) (*Shard, error) {
	s, err := shard.Open(path)
	if err != nil {
		return nil, err
	}
	return &Shard{s}, nil
}

// OpenFile opens the shard in f, as shard.OpenFile does.
func OpenFile(f *format.File) (*Shard, error) {
	s, err := shard.OpenFile(f)
	if err != nil {
		return nil, err
	}
	return &Shard{s}, nil
}
