package format

import (
	"slices"
	"time"
)

// Tags returns the tags of all sections that this version knows.
func Tags() []Tag { return slices.Clone(tags) }

// Mapping returns the bytes of a shard.
func Mapping(f *File) []byte { return f.data }

// ReadFirst records that blocks were read for the first time, in which time.
func ReadFirst(f *File, blocks int64, took time.Duration) { f.readFirst(blocks, took) }
