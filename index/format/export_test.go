package format

import "slices"

// Tags returns the tags of every section this version knows.
func Tags() []Tag { return slices.Clone(tags) }
