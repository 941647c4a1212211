package shard

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/rank"
)

// Mode is what an answer claims.
type Mode uint8

// Modes of a search.
const (
	// Exhaustive finds and counts every match.
	Exhaustive Mode = iota
	// TopK finds exactly the files of Exhaustive, but looks only at documents that
	// may be among them; counts are then lower bounds, and Stats.CountsInexact says so.
	TopK
)

// Options shape one search of one shard. The zero value returns no files but
// counts all matches.
type Options struct {
	Mode Mode
	// MaxFiles is the most documents returned; further ones are only counted.
	MaxFiles int
	// MaxMatchesPerFile is the most ranges returned for a document; further
	// ones are only counted.
	MaxMatchesPerFile int
	// ContextLines are shown before and after each match.
	ContextLines int
	// MaxBytes bounds the sizes of all files together, as FileMatch.Size measures
	// them, and the memory that finding them takes; 0 means no bound. The first
	// file that would pass it and those after are left out, which Result.Cut
	// reports. The best file is returned whatever its size.
	MaxBytes int64
	// Repos says which repos may be read; nil means all. What it refuses is
	// neither read nor counted.
	Repos func(name string) bool
	// Overlays are what has become of repos since the shard was built, by name. Of
	// repos that are not in the shard they are ignored.
	Overlays map[string]Overlay
	// After leaves out documents at or before this place in the total order.
	After *Key
	// Floor is the last of MaxFiles files that were found elsewhere: files that come
	// after it have no room beside those, and may be left out, as after MaxFiles.
	Floor *Key
	// FloorNow, if it is set, is what Floor is by now: searches of other shards that run at the same time raise it. It is
	// called now and then, by several goroutines.
	FloorNow func() *Key
	// Explain fills FileMatch.Explanation and Result.Explanation.
	Explain bool
	// Symbols fills FileMatch.Symbols. For that the whole content of each file that is shown is
	// read, up to 4 MiB.
	Symbols bool

	// pieces, in tests, is how many helpers search small pieces of the shard.
	pieces int
	// smallLexicons, in tests, has contents looked at first where few words hold those of the query.
	smallLexicons bool
	// loose are the words of the query's match:any.
	loose []*rank.LooseWord
}

// Result is what one search of one shard, or a merge of several, found.
type Result struct {
	// Files in the total order of Compare.
	Files []FileMatch
	// Cut is set when files that match, and that MaxFiles has room for, are left
	// out because of MaxBytes, or because files before them could not be shown. They come
	// after the last of Files.
	Cut   bool
	Stats Stats
	// Explanation is there with Options.Explain, if Options.Repos refuses no repo of the
	// shard: what is read depends on all of them.
	Explanation *Explanation
	// Incomplete is nil when the whole shard was searched; otherwise it is why
	// not (a context's error), and what was found before stands.
	Incomplete error
}

// FileMatch is one document that the query matches.
type FileMatch struct {
	Repo string
	Path []byte
	// Branches that hold the document, in the repo's order. Files share them:
	// they must not be changed.
	Branches []string
	// Language by its linguist name; empty when unknown.
	Language string
	// Commit of the first of Branches, hexadecimal.
	Commit string
	// Blob is the Git object id.
	Blob []byte
	// Score is higher for better documents.
	Score float64
	// MatchCount counts all ranges, shown or not. MatchCountAtLeast says that there may be more:
	// in Mode TopK a long content is read only as far as it is shown.
	MatchCount        int
	MatchCountAtLeast bool
	Chunks            []Chunk
	Explanation       string
	// Skip says why the content is not searchable.
	Skip docstore.SkipReason
	// Symbols are those that ranges of the content are in.
	Symbols []Symbol
	// MissingWords are those of a match:any, in their order, that the document has neither in its content nor in its path: up to
	// MaxMissingWords of them. Files share them.
	MissingWords []string
}

// MaxMissingWords is the most words that a FileMatch says it lacks.
const MaxMissingWords = 32

// Key is the document's place in the total order.
func (f *FileMatch) Key() Key {
	return Key{Score: f.Score, Repo: f.Repo, Path: f.Path, Blob: f.Blob}
}

// What FileMatch.Size counts beside bytes of text: about what the structures take
// in memory, and in messages.
const (
	fileSize   = 128
	chunkSize  = 48
	rangeSize  = 24
	symbolSize = 16
	wordSize   = 16
)

// Size is how much room the file takes in an answer, in bytes: a measure for limits.
func (f *FileMatch) Size() int64 {
	size := fileSize + len(f.Path) + len(f.Explanation)
	for i := range f.Chunks {
		size += chunkSize + len(f.Chunks[i].Content) + rangeSize*len(f.Chunks[i].Ranges)
	}
	for i := range f.Symbols {
		size += f.Symbols[i].size()
	}
	for _, word := range f.MissingWords {
		size += wordSize + len(word)
	}
	return int64(size)
}

// Chunk is a run of whole lines, or the path, with the matches in it.
type Chunk struct {
	Content []byte
	// Start is where Content starts.
	Start Location
	// Ranges are non-empty, ascending and do not overlap.
	Ranges []Range
	// FileName says that Content is the document's path.
	FileName bool
}

// Range is a match, [Start, End).
type Range struct {
	Start, End Location
	// Symbol is the place in FileMatch.Symbols, from 1, of the innermost symbol whose name or body
	// the match starts in; 0 if that is not known. Definition says that it starts in the name.
	Symbol     int
	Definition bool
}

// Location is a place in a document.
type Location struct {
	// Offset in bytes from the start, from 0.
	Offset uint32
	// Line number from 1.
	Line uint32
	// Column in runes from the start of the line, from 1.
	Column uint32
}

// Stats say what a search took. They add up over shards.
type Stats struct {
	// FilesMatched and Matches count documents and ranges, returned or not.
	FilesMatched, Matches uint64
	// FilesConsidered counts documents looked at after the n-gram filter.
	FilesConsidered uint64
	// BytesDecoded and UnitsDecoded count content that was decompressed.
	BytesDecoded, UnitsDecoded uint64
	// ListsRead counts posting lists that were opened.
	ListsRead uint64
	// ShardsScanned counts shards in which some atom had no n-gram to filter by.
	ShardsScanned uint64
	// CountsInexact is set when FilesMatched and Matches are lower bounds.
	CountsInexact bool
}

// Add adds the statistics of another search.
func (s *Stats) Add(o Stats) {
	s.FilesMatched += o.FilesMatched
	s.Matches += o.Matches
	s.FilesConsidered += o.FilesConsidered
	s.BytesDecoded += o.BytesDecoded
	s.UnitsDecoded += o.UnitsDecoded
	s.ListsRead += o.ListsRead
	s.ShardsScanned += o.ShardsScanned
	s.CountsInexact = s.CountsInexact || o.CountsInexact
}

// Key is a place in the total order of results.
type Key struct {
	Score      float64
	Repo       string
	Path, Blob []byte
}

// Compare is the total order of results: score descending, then repo, path and
// blob ascending. It is negative when a comes first.
func Compare(a, b Key) int {
	return cmp.Or(
		cmp.Compare(b.Score, a.Score),
		strings.Compare(a.Repo, b.Repo),
		bytes.Compare(a.Path, b.Path),
		bytes.Compare(a.Blob, b.Blob),
	)
}
