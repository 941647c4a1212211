package searchapi

import (
	"iter"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/index/snippet"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Files maps the files of a shard's result, one at a time. It shares bytes with the
// result.
func Files(files []search.FileMatch) iter.Seq[*searchv1.FileMatch] {
	return func(yield func(*searchv1.FileMatch) bool) {
		for i := range files {
			if !yield(file(&files[i])) {
				return
			}
		}
	}
}

func file(f *search.FileMatch) *searchv1.FileMatch {
	return &searchv1.FileMatch{
		Repo: f.Repo, Path: f.Path, Branches: f.Branches, Language: f.Language,
		Commit: f.Commit, Blob: f.Blob, Score: f.Score, MatchCount: uint64(f.MatchCount),
		Chunks: chunks(f.Chunks), Explanation: f.Explanation,
		SkipReason: searchv1.SkipReason(f.Skip), Symbols: symbolsOf(f.Symbols), MissingWords: f.MissingWords,
	}
}

func symbolsOf(in []snippet.Symbol) []*searchv1.Symbol {
	out := make([]*searchv1.Symbol, len(in))
	for i := range in {
		out[i] = &searchv1.Symbol{Name: in[i].Name, Kind: searchv1.SymbolKind(in[i].Kind), Scope: in[i].Scope}
	}
	return out
}

// chunks allocates all messages of a kind together: a file has hundreds of matches,
// each of three messages.
func chunks(in []snippet.Chunk) []*searchv1.ChunkMatch {
	matches := 0
	for i := range in {
		matches += len(in[i].Ranges)
	}
	m := messages{
		ranges: make([]searchv1.Range, matches), rangeList: make([]*searchv1.Range, matches),
		locations: make([]searchv1.Location, len(in)+2*matches),
	}
	all, out := make([]searchv1.ChunkMatch, len(in)), make([]*searchv1.ChunkMatch, len(in))
	for i := range in {
		c := &in[i]
		out[i] = &all[i]
		out[i].Content, out[i].ContentStart = c.Content, m.location(c.Start)
		out[i].Ranges, out[i].FileName = m.someRanges(c.Ranges), c.FileName
		out[i].CutBefore, out[i].CutAfter, out[i].CutRanges = uint32(c.CutBefore), uint32(c.CutAfter), uint32(c.CutRanges)
	}
	return out
}

// messages are allocated messages that are not used yet.
type messages struct {
	ranges    []searchv1.Range
	rangeList []*searchv1.Range
	locations []searchv1.Location
}

func (m *messages) someRanges(in []snippet.Range) []*searchv1.Range {
	n := len(in)
	out := m.rangeList[:n:n]
	for i := range in {
		out[i] = &m.ranges[i]
		out[i].Start, out[i].End = m.location(in[i].Start), m.location(in[i].End)
		out[i].Symbol, out[i].Definition = uint32(in[i].Symbol), in[i].Definition
		if in[i].LineScore > 0 {
			out[i].LineScore = &in[i].LineScore
		}
	}
	m.ranges, m.rangeList = m.ranges[n:], m.rangeList[n:]
	return out
}

func (m *messages) location(l snippet.Location) *searchv1.Location {
	to := &m.locations[0]
	m.locations = m.locations[1:]
	to.ByteOffset, to.LineNumber, to.Column = l.Offset, l.Line, l.Column
	return to
}

// Statistics maps the statistics of shards.
func Statistics(s search.Stats) *searchv1.Statistics {
	return &searchv1.Statistics{
		FilesMatched: s.FilesMatched, Matches: s.Matches, CountsExact: !s.CountsInexact,
		FilesConsidered: s.FilesConsidered, BytesDecoded: s.BytesDecoded, UnitsDecoded: s.UnitsDecoded,
		PostingListsRead: s.ListsRead, ShardsScanned: s.ShardsScanned,
	}
}

// AddStatistics adds from to sum. The counts are exact if both were. Duration and
// clamped stay those of sum.
func AddStatistics(sum, from *searchv1.Statistics) {
	sum.FilesMatched += from.GetFilesMatched()
	sum.Matches += from.GetMatches()
	sum.CountsExact = sum.CountsExact && from.GetCountsExact()
	sum.FilesConsidered += from.GetFilesConsidered()
	sum.BytesDecoded += from.GetBytesDecoded()
	sum.UnitsDecoded += from.GetUnitsDecoded()
	sum.PostingListsRead += from.GetPostingListsRead()
	sum.ShardsScanned += from.GetShardsScanned()
}

// FilesOfRepos returns the files of all repos, in their order, each with the name of its repo.
func FilesOfRepos(repos []*searchv1.RepoMatches) (files []*searchv1.FileMatch) {
	for _, group := range repos {
		for _, f := range group.GetFiles() {
			f.Repo = group.GetRepo()
			files = append(files, f)
		}
	}
	return files
}
