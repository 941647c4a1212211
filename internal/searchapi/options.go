package searchapi

import (
	"cmp"

	"github.com/trawl-search/trawl/index/search"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// The meanings of a zero limit in SearchOptions, as the message documents them.
const (
	DefaultMaxFiles          = 50
	DefaultMaxMatchesPerFile = 100
	// DefaultMaxBytes is the largest message that gRPC clients accept by default.
	DefaultMaxBytes = 4 << 20
	// DefaultFacetValues is the default of max_facet_values.
	DefaultFacetValues = 10
)

// MaxFiles and MaxBytes are the most that a message may ask for; its validation enforces
// them.
const (
	MaxFiles = 10_000
	MaxBytes = 64 << 20
)

// ContentField is the most bytes that the content field of a GetFileResponse takes in
// addition to the content.
const ContentField = 8

// WithDefaults returns a copy of the options with every default filled in; o
// may be nil.
func WithDefaults(o *searchv1.SearchOptions) *searchv1.SearchOptions {
	full := CopyOptions(o)
	full.MaxFiles = cmp.Or(full.MaxFiles, DefaultMaxFiles)
	full.MaxMatchesPerFile = cmp.Or(full.MaxMatchesPerFile, DefaultMaxMatchesPerFile)
	full.MaxBytes = cmp.Or(full.MaxBytes, DefaultMaxBytes)
	full.MaxFacetValues = cmp.Or(full.MaxFacetValues, DefaultFacetValues)
	full.SyntaxVersion = cmp.Or(full.SyntaxVersion, 1)
	if full.Mode == searchv1.Mode_MODE_UNSPECIFIED {
		full.Mode = searchv1.Mode_MODE_EXHAUSTIVE
	}
	return full
}

// CopyOptions returns a copy of the options, which may be nil, whose fields can be
// set. It shares what the fields refer to. Each query takes several.
func CopyOptions(o *searchv1.SearchOptions) *searchv1.SearchOptions {
	if o == nil {
		return &searchv1.SearchOptions{}
	}
	c := &searchv1.SearchOptions{
		Mode: o.Mode, MaxFiles: o.MaxFiles, MaxMatchesPerFile: o.MaxMatchesPerFile, ContextLines: o.ContextLines,
		MaxBytes: o.MaxBytes, RequireComplete: o.RequireComplete, Consistency: o.Consistency, SyntaxVersion: o.SyntaxVersion, Explain: o.Explain,
		Symbols: o.Symbols, Facets: o.Facets, MaxFacetValues: o.MaxFacetValues, CountOnly: o.CountOnly, MaxLineBytes: o.MaxLineBytes, MaxLinesPerFile: o.MaxLinesPerFile,
		LineScores: o.LineScores,
	}
	if unknown := o.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		c.ProtoReflect().SetUnknown(unknown)
	}
	return c
}

// ShardOptions are the options for searching one shard: o with its defaults, results
// after a place (nil: from the first), only in the given repos.
func ShardOptions(o *searchv1.SearchOptions, after *search.Key, repos ShardRepos) search.Options {
	mode := search.Exhaustive
	if o.Mode == searchv1.Mode_MODE_TOP_K && !o.CountOnly {
		mode = search.TopK
	}
	return search.Options{
		Mode:              mode,
		MaxFiles:          FilesOf(o),
		MaxMatchesPerFile: int(o.MaxMatchesPerFile),
		MaxLinesPerFile:   int(o.MaxLinesPerFile),
		ContextLines:      int(o.ContextLines),
		MaxLine:           int(o.MaxLineBytes),
		MaxBytes:          int64(o.MaxBytes),
		Repos:             repos.Filter(),
		After:             after,
		Explain:           o.Explain,
		Symbols:           o.Symbols,
		LineScores:        o.LineScores,
	}
}

// FilesOf is how many files are wanted: MaxFiles, or none if they are only counted.
func FilesOf(o *searchv1.SearchOptions) int {
	if o.CountOnly {
		return 0
	}
	return int(o.MaxFiles)
}
