package format

import "slices"

// Tags returns the tags of all sections that this version knows.
func Tags() []Tag { return slices.Clone(tags) }

// Mapping returns the bytes of a shard.
func Mapping(f *File) []byte { return f.data }
