package searchwire

import (
	"iter"

	"github.com/trawl-search/trawl/index/shard"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Files maps the files of a shard's result, one after the other as they are asked
// for. Bytes are shared with the result.
func Files(files []shard.FileMatch) iter.Seq[*searchv1.FileMatch] {
	return func(yield func(*searchv1.FileMatch) bool) {
		for i := range files {
			if !yield(file(&files[i])) {
				return
			}
		}
	}
}

func file(f *shard.FileMatch) *searchv1.FileMatch {
	return &searchv1.FileMatch{
		Repo: f.Repo, Path: f.Path, Branches: f.Branches, Language: f.Language,
		Commit: f.Commit, Blob: f.Blob, Score: f.Score, MatchCount: uint64(f.MatchCount),
		Chunks: chunks(f.Chunks), Explanation: f.Explanation,
		SkipReason: searchv1.SkipReason(f.Skip),
	}
}

func chunks(in []shard.Chunk) []*searchv1.ChunkMatch {
	out := make([]*searchv1.ChunkMatch, len(in))
	for i, c := range in {
		out[i] = &searchv1.ChunkMatch{
			Content: c.Content, ContentStart: location(c.Start),
			Ranges: ranges(c.Ranges), FileName: c.FileName,
		}
	}
	return out
}

func ranges(in []shard.Range) []*searchv1.Range {
	out := make([]*searchv1.Range, len(in))
	for i, r := range in {
		out[i] = &searchv1.Range{Start: location(r.Start), End: location(r.End)}
	}
	return out
}

func location(l shard.Location) *searchv1.Location {
	return &searchv1.Location{ByteOffset: l.Offset, LineNumber: l.Line, Column: l.Column}
}

// Statistics maps the statistics of shards.
func Statistics(s shard.Stats) *searchv1.Statistics {
	return &searchv1.Statistics{
		FilesMatched: s.FilesMatched, Matches: s.Matches, CountsExact: !s.CountsInexact,
		FilesConsidered: s.FilesConsidered, BytesDecoded: s.BytesDecoded, UnitsDecoded: s.UnitsDecoded,
		PostingListsRead: s.ListsRead, ShardsScanned: s.ShardsScanned,
	}
}

// AddStatistics adds from to sum: counts add up, and are exact while all of
// them are. Duration and clamped stay those of sum.
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
