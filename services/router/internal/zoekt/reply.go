package zoekt

import "time"

type searchReply struct {
	Result searchResult `json:"Result"`
}

type searchResult struct {
	stats

	Files []fileMatch `json:"Files"`
	// RepoURLs and LineFragments are templates of links to files and lines, by repo.
	RepoURLs      map[string]string `json:"RepoURLs"`
	LineFragments map[string]string `json:"LineFragments"`
	Trawl         account           `json:"Trawl"`
}

// stats are zoekt's. Statistics that Trawl does not have are always zero.
type stats struct {
	ContentBytesLoaded    int64         `json:"ContentBytesLoaded"`
	IndexBytesLoaded      int64         `json:"IndexBytesLoaded"`
	Crashes               int           `json:"Crashes"`
	Duration              time.Duration `json:"Duration"`
	FileCount             int           `json:"FileCount"`
	ShardFilesConsidered  int           `json:"ShardFilesConsidered"`
	FilesConsidered       int           `json:"FilesConsidered"`
	FilesLoaded           int           `json:"FilesLoaded"`
	FilesSkipped          int           `json:"FilesSkipped"`
	ShardsScanned         int           `json:"ShardsScanned"`
	ShardsSkipped         int           `json:"ShardsSkipped"`
	ShardsSkippedFilter   int           `json:"ShardsSkippedFilter"`
	MatchCount            int           `json:"MatchCount"`
	NgramMatches          int           `json:"NgramMatches"`
	NgramLookups          int           `json:"NgramLookups"`
	Wait                  time.Duration `json:"Wait"`
	MatchTreeConstruction time.Duration `json:"MatchTreeConstruction"`
	MatchTreeSearch       time.Duration `json:"MatchTreeSearch"`
	RegexpsConsidered     int           `json:"RegexpsConsidered"`
	FlushReason           flushReason   `json:"FlushReason"`
}

// flushReason says why an answer was cut short; zero means that it was not.
type flushReason uint8

const (
	flushTimer flushReason = 1
	flushSize  flushReason = 4
)

type fileMatch struct {
	// FileName shows bytes that are not UTF-8 as U+FFFD. TrawlPath has the exact path then.
	FileName   string   `json:"FileName"`
	Repository string   `json:"Repository"`
	Version    string   `json:"Version,omitempty"`
	Language   string   `json:"Language"`
	Debug      string   `json:"Debug,omitempty"`
	Branches   []string `json:"Branches,omitempty"`
	// One of LineMatches and ChunkMatches is set, even if it is empty.
	LineMatches  []lineMatch  `json:"LineMatches,omitzero"`
	ChunkMatches []chunkMatch `json:"ChunkMatches,omitzero"`
	Content      []byte       `json:"Content,omitempty"`
	// Checksum is the Git object id of the content.
	Checksum     []byte  `json:"Checksum"`
	Score        float64 `json:"Score,omitempty"`
	RepositoryID uint32  `json:"RepositoryID,omitempty"`
	TrawlPath    []byte  `json:"TrawlPath,omitempty"`
}

type lineMatch struct {
	// Line with its newline, if it has one.
	Line []byte `json:"Line"`
	// LineStart and LineEnd are the offsets of Line in the file.
	LineStart     int            `json:"LineStart"`
	LineEnd       int            `json:"LineEnd"`
	LineNumber    int            `json:"LineNumber"`
	Before        []byte         `json:"Before"`
	After         []byte         `json:"After"`
	FileName      bool           `json:"FileName"`
	Score         float64        `json:"Score"`
	DebugScore    string         `json:"DebugScore"`
	LineFragments []lineFragment `json:"LineFragments"`
}

type lineFragment struct {
	LineOffset  int    `json:"LineOffset"`
	Offset      uint32 `json:"Offset"`
	MatchLength int    `json:"MatchLength"`
	// SymbolInfo is the definition whose name the match is in; nil if there is none or it is
	// unknown.
	SymbolInfo *symbolInfo `json:"SymbolInfo"`
}

type chunkMatch struct {
	DebugScore string      `json:"DebugScore"`
	Content    []byte      `json:"Content"`
	Ranges     []textRange `json:"Ranges"`
	// SymbolInfo has one entry for each range, or none at all.
	SymbolInfo    []*symbolInfo `json:"SymbolInfo"`
	FileName      bool          `json:"FileName"`
	ContentStart  location      `json:"ContentStart"`
	Score         float64       `json:"Score"`
	BestLineMatch uint32        `json:"BestLineMatch"`
}

// symbolInfo is a definition. Trawl does not know the kind of the parent.
type symbolInfo struct {
	Sym        string `json:"Sym"`
	Kind       string `json:"Kind"`
	Parent     string `json:"Parent"`
	ParentKind string `json:"ParentKind"`
}

type textRange struct {
	Start location `json:"Start"`
	End   location `json:"End"`
}

type location struct {
	ByteOffset uint32 `json:"ByteOffset"`
	LineNumber uint32 `json:"LineNumber"`
	Column     uint32 `json:"Column"`
}

// account is what zoekt's fields cannot express. Programs made for zoekt ignore it.
type account struct {
	// Complete: every shard that could hold a match was searched to its end.
	Complete   bool   `json:"Complete"`
	Requested  uint64 `json:"Requested"`
	Searched   uint64 `json:"Searched"`
	Pruned     uint64 `json:"Pruned"`
	Failed     uint64 `json:"Failed"`
	NotReached uint64 `json:"NotReached"`
	// CountsAtLeast: FileCount and MatchCount are lower bounds.
	CountsAtLeast bool `json:"CountsAtLeast,omitempty"`
	// Uncovered are the first shards that failed or were not reached.
	Uncovered []uncovered `json:"Uncovered,omitempty"`
	// Clamped are the options that exceeded the limits of this server.
	Clamped []string `json:"Clamped,omitempty"`
	// FilesLeftOut counts matching files without room in the answer.
	FilesLeftOut int `json:"FilesLeftOut,omitempty"`
	// ReposLeftOut counts matching repos without room in the answer.
	ReposLeftOut int `json:"ReposLeftOut,omitempty"`
	// Ignored are options that were set but have no effect.
	Ignored []string `json:"Ignored,omitempty"`
	// ContentsMissing counts the files whose content is missing although Whole is set.
	ContentsMissing int `json:"ContentsMissing,omitempty"`
	// SharedIDs are the repos that ReposMap cannot hold because another repo has the
	// same ID.
	SharedIDs []string `json:"SharedIDs,omitempty"`
	// WithoutID counts the repos that ReposMap cannot hold because they have no ID.
	WithoutID int `json:"WithoutID,omitempty"`
}

type uncovered struct {
	Shard   string   `json:"Shard"`
	Repos   []string `json:"Repos"`
	Reason  string   `json:"Reason"`
	Message string   `json:"Message"`
}
