package symbols

import (
	"maps"
	"slices"
)

// Supported are the names of all languages that have rules, sorted.
func Supported() []string { return slices.Sorted(maps.Keys(languages)) }
