package zoekt

import (
	"cmp"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

// defaultShardMatches is zoekt's ShardMaxMatchCount where a message has none. Only the JSON
// of zoekt derives a smaller one from MaxDocDisplayCount.
const defaultShardMatches = 100_000

// optionsOf reads the options of a message.
func optionsOf(o *webserverv1.SearchOptions) *searchOptions {
	return &searchOptions{
		EstimateDocCount: o.GetEstimateDocCount(), Whole: o.GetWhole(),
		ShardMaxMatchCount: cmp.Or(int(o.GetShardMaxMatchCount()), defaultShardMatches), TotalMaxMatchCount: int(o.GetTotalMaxMatchCount()), ShardRepoMaxMatchCount: int(o.GetShardRepoMaxMatchCount()),
		MaxWallTime: o.GetMaxWallTime().AsDuration(), FlushWallTime: o.GetFlushWallTime().AsDuration(),
		MaxDocDisplayCount: int(o.GetMaxDocDisplayCount()), MaxMatchDisplayCount: int(o.GetMaxMatchDisplayCount()),
		NumContextLines: int(o.GetNumContextLines()), ChunkMatches: o.GetChunkMatches(), UseBM25Scoring: o.GetUseBm25Scoring(),
		Trace: o.GetTrace(), DebugScore: o.GetDebugScore(),
	}
}

// message is the statistics. Files that the limits of this server left out count as skipped:
// messages have no other field that says so.
func (r *searchResult) message() *webserverv1.Stats {
	s := &r.stats
	return &webserverv1.Stats{
		ContentBytesLoaded: s.ContentBytesLoaded, IndexBytesLoaded: s.IndexBytesLoaded, Crashes: int64(s.Crashes),
		Duration: durationpb.New(s.Duration), FileCount: int64(s.FileCount), ShardFilesConsidered: int64(s.ShardFilesConsidered),
		FilesConsidered: int64(s.FilesConsidered), FilesLoaded: int64(s.FilesLoaded),
		FilesSkipped:  int64(s.FilesSkipped + r.Trawl.FilesLeftOut),
		ShardsScanned: int64(s.ShardsScanned), ShardsSkipped: int64(s.ShardsSkipped), ShardsSkippedFilter: int64(s.ShardsSkippedFilter),
		MatchCount: int64(s.MatchCount), NgramMatches: int64(s.NgramMatches), NgramLookups: int64(s.NgramLookups),
		Wait: durationpb.New(s.Wait), MatchTreeConstruction: durationpb.New(s.MatchTreeConstruction), MatchTreeSearch: durationpb.New(s.MatchTreeSearch),
		RegexpsConsidered: int64(s.RegexpsConsidered), FlushReason: s.FlushReason.message(),
	}
}

func (f flushReason) message() webserverv1.FlushReason {
	switch f {
	case flushTimer:
		return webserverv1.FlushReason_FLUSH_REASON_TIMER_EXPIRED
	case flushSize:
		return webserverv1.FlushReason_FLUSH_REASON_MAX_SIZE
	}
	return webserverv1.FlushReason_FLUSH_REASON_UNKNOWN_UNSPECIFIED
}

func (m *fileMatch) message() *webserverv1.FileMatch {
	f := &webserverv1.FileMatch{
		Score: m.Score, Debug: m.Debug, FileName: []byte(m.FileName), Repository: m.Repository, Branches: m.Branches,
		RepositoryId: m.RepositoryID, Content: m.Content, Checksum: m.Checksum, Language: m.Language, Version: m.Version,
		LineMatches:  make([]*webserverv1.LineMatch, len(m.LineMatches)),
		ChunkMatches: make([]*webserverv1.ChunkMatch, len(m.ChunkMatches)),
	}
	if m.TrawlPath != nil {
		f.FileName = m.TrawlPath
	}
	for i := range m.LineMatches {
		f.LineMatches[i] = m.LineMatches[i].message()
	}
	for i := range m.ChunkMatches {
		f.ChunkMatches[i] = m.ChunkMatches[i].message()
	}
	return f
}

func (m *lineMatch) message() *webserverv1.LineMatch {
	l := &webserverv1.LineMatch{
		Line: m.Line, LineStart: int64(m.LineStart), LineEnd: int64(m.LineEnd), LineNumber: int64(m.LineNumber),
		Before: m.Before, After: m.After, FileName: m.FileName, Score: m.Score, DebugScore: m.DebugScore,
		LineFragments: make([]*webserverv1.LineFragmentMatch, len(m.LineFragments)),
	}
	for i, f := range m.LineFragments {
		l.LineFragments[i] = &webserverv1.LineFragmentMatch{LineOffset: int64(f.LineOffset), Offset: f.Offset, MatchLength: int64(f.MatchLength), SymbolInfo: f.SymbolInfo.message()}
	}
	return l
}

func (m *chunkMatch) message() *webserverv1.ChunkMatch {
	c := &webserverv1.ChunkMatch{
		Content: m.Content, ContentStart: m.ContentStart.message(), FileName: m.FileName,
		Score: m.Score, DebugScore: m.DebugScore, BestLineMatch: m.BestLineMatch,
		Ranges: make([]*webserverv1.Range, len(m.Ranges)),
	}
	for i, r := range m.Ranges {
		c.Ranges[i] = &webserverv1.Range{Start: r.Start.message(), End: r.End.message()}
	}
	for _, s := range m.SymbolInfo {
		info := s.message()
		if info == nil {
			info = &webserverv1.SymbolInfo{} // a list of messages has no gaps
		}
		c.SymbolInfo = append(c.SymbolInfo, info)
	}
	return c
}

func (s *symbolInfo) message() *webserverv1.SymbolInfo {
	if s == nil {
		return nil
	}
	return &webserverv1.SymbolInfo{Sym: s.Sym, Kind: s.Kind, Parent: s.Parent, ParentKind: s.ParentKind}
}

func (l location) message() *webserverv1.Location {
	return &webserverv1.Location{ByteOffset: l.ByteOffset, LineNumber: l.LineNumber, Column: l.Column}
}

// message is the list. Repos that it cannot hold count as crashes: messages have no
// other field that says so.
func (l *repoList) message() *webserverv1.ListResponse {
	m := &webserverv1.ListResponse{
		Crashes: int64(l.Crashes) + int64(l.Trawl.NotReached) + int64(l.Trawl.ReposLeftOut+len(l.Trawl.SharedIDs)),
		Stats:   l.Stats.message(), Repos: make([]*webserverv1.RepoListEntry, len(l.Repos)),
		ReposMap: make(map[uint32]*webserverv1.MinimalRepoListEntry, len(l.ReposMap)),
	}
	for i := range l.Repos {
		m.Repos[i] = l.Repos[i].message()
	}
	for id, e := range l.ReposMap {
		m.ReposMap[id] = &webserverv1.MinimalRepoListEntry{HasSymbols: e.HasSymbols, Branches: branchMessages(e.Branches), IndexTimeUnix: e.IndexTimeUnix}
	}
	return m
}

func (e *repoEntry) message() *webserverv1.RepoListEntry {
	return &webserverv1.RepoListEntry{
		Repository: &webserverv1.Repository{
			Id: e.Repository.ID, Name: e.Repository.Name, Url: e.Repository.URL, Branches: branchMessages(e.Repository.Branches),
			HasSymbols: e.Repository.HasSymbols, LatestCommitDate: timestamppb.New(e.Repository.LatestCommitDate),
		},
		IndexMetadata: &webserverv1.IndexMetadata{IndexTime: timestamppb.New(e.IndexMetadata.IndexTime)},
		Stats:         e.Stats.message(),
	}
}

func branchMessages(branches []branchEntry) []*webserverv1.RepositoryBranch {
	list := make([]*webserverv1.RepositoryBranch, len(branches))
	for i, b := range branches {
		list[i] = &webserverv1.RepositoryBranch{Name: b.Name, Version: b.Version}
	}
	return list
}

func (s *repoStats) message() *webserverv1.RepoStats {
	return &webserverv1.RepoStats{
		Repos: int64(s.Repos), Shards: int64(s.Shards), Documents: int64(s.Documents), IndexBytes: s.IndexBytes, ContentBytes: s.ContentBytes,
		NewLinesCount: s.NewLinesCount, DefaultBranchNewLinesCount: s.DefaultBranchNewLinesCount, OtherBranchesNewLinesCount: s.OtherBranchesNewLinesCount,
	}
}
