package symbols

import (
	"maps"
	"slices"
)

// Supported returns the names of all languages that have rules, sorted.
func Supported() []string { return slices.Sorted(maps.Keys(languages)) }
