package search

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/snippet"
)

// Mode says what an answer promises.
type Mode uint8

// Modes of a search.
const (
	// Exhaustive finds and counts every match.
	Exhaustive Mode = iota
	// TopK finds exactly the files of Exhaustive, but looks only at documents that may be among
	// them. Counts are then lower bounds, as Stats.CountsInexact says.
	TopK
)

// Options configure one search of one shard. The zero value returns no files but counts all
// matches.
type Options struct {
	Mode Mode
	// MaxFiles is the most documents returned; others are only counted.
	MaxFiles int
	// MaxMatchesPerFile is the most ranges returned for a document; others are only counted.
	MaxMatchesPerFile int
	// MaxLinesPerFile is the most lines in which the ranges returned for a document begin; 0 means no bound.
	MaxLinesPerFile int
	// ContextLines and MaxLine are those of snippet.Options.
	ContextLines, MaxLine int
	// MaxBytes bounds the total size of the files, as FileMatch.Size measures it, and the memory
	// for finding them; 0 means no bound. The first file that exceeds it is left out with all later
	// ones, and Result.Cut reports that. The best file is returned whatever its size.
	MaxBytes int64
	// Repos says which repos of the shard may be read, by their numbers from 0; nil means all. A repo that it
	// refuses is neither read nor counted. Several goroutines call it, and it must always answer the same.
	Repos func(repo int) bool
	// Overlays describe what has become of repos since the shard was built, by their numbers. Repos
	// that are not in the shard are ignored.
	Overlays map[int]Overlay
	// After excludes documents at or before this place in the total order.
	After *Key
	// Floor is the last of MaxFiles files that were found elsewhere. Files after it have no room in
	// the answer and may be left out, as after MaxFiles.
	Floor *Key
	// FloorNow, if set, returns the current Floor, which concurrent searches of other shards raise.
	// Several goroutines call it now and then.
	FloorNow func() *Key
	// Explain fills FileMatch.Explanation and Result.Explanation.
	Explain bool
	// Symbols fills FileMatch.Symbols. This reads the whole content of each file that is shown, up
	// to 4 MiB.
	Symbols bool
	// LineScores fills Range.LineScore of what is shown of contents.
	LineScores bool

	// helpers, in tests, is how many goroutines join the search, however little work there is.
	helpers int
	// loose are the words of the query's match:any, branches those of the query outside of a Not.
	loose    []*rank.LooseWord
	branches []*query.Branch
}

// Result is the result of one search of one shard, or a merge of several.
type Result struct {
	// Files are in the total order of Compare.
	Files []FileMatch
	// Cut is set when matching files that MaxFiles has room for are left out because of MaxBytes,
	// or because files before them could not be shown. They come after the last of Files.
	Cut   bool
	Stats Stats
	// Explanation is set with Options.Explain, unless Options.Repos refuses a repo of the shard:
	// what is read depends on all repos.
	Explanation *Explanation
	// Incomplete is nil if the whole shard was searched. Otherwise it is the reason (a context's
	// error), and the result holds what was found before.
	Incomplete error
}

// FileMatch is one document that the query matches.
type FileMatch struct {
	Repo string
	Path []byte
	// Branches are the branches that hold the document, in the repo's order: of those that the query
	// selects, if it selects some of them. Files share the slice, which must not be changed.
	Branches []string
	// Language is the linguist name; empty if unknown.
	Language string
	// Commit is the commit of the first of Branches, in hexadecimal.
	Commit string
	// Blob is the Git object id.
	Blob []byte
	// Score is higher for better documents.
	Score float64
	// MatchCount counts all ranges, if all are shown. Otherwise it is the sum over the texts of the query, where ranges of two texts that
	// overlap count twice.
	MatchCount  int
	Chunks      []snippet.Chunk
	Explanation string
	// Skip says why the content is not searchable.
	Skip docstore.SkipReason
	// Symbols are the definitions that contain matches in the content.
	Symbols []snippet.Symbol
	// MissingWords are the words and expressions of a match:any, in their order, that neither the content nor the
	// path has: up to MaxMissingWords. Files share the slice, which must not be changed.
	MissingWords []string
}

// MaxMissingWords is the most words in FileMatch.MissingWords.
const MaxMissingWords = 32

// Key is the document's place in the total order.
func (f *FileMatch) Key() Key {
	return Key{Score: f.Score, Repo: f.Repo, Path: f.Path, Blob: f.Blob}
}

// FileMatch.Size counts these in addition to bytes of text: about the size of the structures in
// memory and in messages.
const (
	fileSize  = 128
	rangeSize = snippet.RangeSize
	wordSize  = 16
)

// Size is the room in bytes that the file takes in an answer, measured against limits.
func (f *FileMatch) Size() int64 {
	size := fileSize + len(f.Path) + len(f.Explanation)
	for i := range f.Chunks {
		size += f.Chunks[i].Size()
	}
	for i := range f.Symbols {
		size += f.Symbols[i].Size()
	}
	for _, word := range f.MissingWords {
		size += wordSize + len(word)
	}
	return int64(size)
}

// Stats say what a search took. They can be summed over shards.
type Stats struct {
	// FilesMatched and Matches count documents and the ranges of each text of the query in them, returned or not.
	FilesMatched, Matches uint64
	// FilesConsidered counts documents looked at after the n-gram filter.
	FilesConsidered uint64
	// BytesDecoded and UnitsDecoded count content that was decompressed, or came from the cache of what was.
	BytesDecoded, UnitsDecoded uint64
	// ListsRead counts the posting lists that were opened.
	ListsRead uint64
	// ShardsScanned counts shards in which an atom had no n-gram to filter by.
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

// Compare is the total order of results: descending score, then ascending repo, path and blob. It
// is negative if a comes first.
func Compare(a, b Key) int {
	return cmp.Or(
		cmp.Compare(b.Score, a.Score),
		strings.Compare(a.Repo, b.Repo),
		bytes.Compare(a.Path, b.Path),
		bytes.Compare(a.Blob, b.Blob),
	)
}
