package zoekt

import (
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

type searchRequest struct {
	Q string `json:"Q"`
	// RepoIDs are the repos to search. An empty list allows none.
	RepoIDs *[]uint32     `json:"RepoIDs"`
	Opts    searchOptions `json:"Opts"`
}

// searchOptions are zoekt's, with its names. Counts of zero or less mean no limit.
type searchOptions struct {
	EstimateDocCount       bool              `json:"EstimateDocCount"`
	Whole                  bool              `json:"Whole"`
	ShardMaxMatchCount     int               `json:"ShardMaxMatchCount"`
	TotalMaxMatchCount     int               `json:"TotalMaxMatchCount"`
	ShardRepoMaxMatchCount int               `json:"ShardRepoMaxMatchCount"`
	MaxWallTime            time.Duration     `json:"MaxWallTime"`
	FlushWallTime          time.Duration     `json:"FlushWallTime"`
	MaxDocDisplayCount     int               `json:"MaxDocDisplayCount"`
	MaxMatchDisplayCount   int               `json:"MaxMatchDisplayCount"`
	NumContextLines        int               `json:"NumContextLines"`
	ChunkMatches           bool              `json:"ChunkMatches"`
	UseBM25Scoring         bool              `json:"UseBM25Scoring"`
	Trace                  bool              `json:"Trace"`
	DebugScore             bool              `json:"DebugScore"`
	SpanContext            map[string]string `json:"SpanContext"`
}

type listRequest struct {
	Q    string `json:"Q"`
	Opts struct {
		Field listField `json:"Field"`
	} `json:"Opts"`
}

// listField is the form of a list.
type listField int

const (
	listRepos    listField = 0
	listReposMap listField = 2
)

// Limits of the messages to searchers.
const (
	maxQuery   = 16 << 10
	maxMatches = 100_000
	// maxContext is one less than they allow: one extra line shows whether the last
	// wanted line ends with a newline.
	maxContext = 19
)

func checkQuery(q string) error {
	if len(q) > maxQuery {
		return refused(http.StatusBadRequest, "Q: the query has %d bytes: the limit is %d", len(q), maxQuery)
	}
	return nil
}

func (r *searchRequest) check() error {
	if r.Q == "" {
		return refused(http.StatusBadRequest, "Q: the query is missing")
	}
	if err := r.Opts.check(); err != nil {
		return err
	}
	return checkQuery(r.Q)
}

// check refuses options that mean nothing. Its error is a status.
func (o *searchOptions) check() error {
	if o.MaxWallTime < 0 {
		return status.Errorf(codes.InvalidArgument, "Opts.MaxWallTime: %d ns is negative", int64(o.MaxWallTime))
	}
	return nil
}

// keep is the predicate of the repos to search; nil keeps all.
func (r *searchRequest) keep() func(repo string, id uint32) bool {
	if r.RepoIDs == nil {
		return nil
	}
	allowed := make(map[uint32]bool, len(*r.RepoIDs))
	for _, id := range *r.RepoIDs {
		allowed[id] = true
	}
	delete(allowed, 0) // no id
	return func(_ string, id uint32) bool { return allowed[id] }
}

// ask translates a request to Trawl's.
func (o *searchOptions) ask(q question, limits Limits) *searchv1.SearchRequest {
	files := limits.Files
	// A limit for each repo applies to the results, so more results are needed.
	if o.MaxDocDisplayCount > 0 && o.ShardRepoMaxMatchCount <= 0 {
		files = uint32(min(uint64(files), uint64(o.MaxDocDisplayCount)))
	}
	matches := maxMatches
	if limit := o.matchLimit(); limit > 0 {
		matches = min(matches, limit)
	}
	return &searchv1.SearchRequest{Query: q.text, Tree: q.tree, Options: &searchv1.SearchOptions{
		Mode: o.mode(), MaxFiles: files, MaxMatchesPerFile: uint32(matches), MaxBytes: limits.Bytes,
		ContextLines: uint32(o.context()) + 1, Explain: o.DebugScore, LineScores: true,
	}}
}

// mode is exhaustive if the request needs exact counts. As in zoekt, a request that limits
// files but not matches needs the best files only (CalculateDefaultSearchLimits in zoekt's
// internal/json).
func (o *searchOptions) mode() searchv1.Mode {
	if o.MaxDocDisplayCount > 0 && o.ShardMaxMatchCount == 0 && o.ShardRepoMaxMatchCount <= 0 {
		return searchv1.Mode_MODE_TOP_K
	}
	return searchv1.Mode_MODE_EXHAUSTIVE
}

// bestMatches bounds the matches shown of a file where the best files are asked for, as the default
// of Trawl's own interface does. zoekt shows fewer then: it stops after about five matches for each file wanted.
const bestMatches = 100

// matchLimit is the most matches shown of a file; zero means no limit.
func (o *searchOptions) matchLimit() int {
	if o.MaxMatchDisplayCount <= 0 && o.mode() == searchv1.Mode_MODE_TOP_K {
		return bestMatches
	}
	return o.MaxMatchDisplayCount
}

// context is the number of lines to show before and after a match.
func (o *searchOptions) context() int { return min(max(o.NumContextLines, 0), maxContext) }

// clamped names the options that exceed the limits.
func (o *searchOptions) clamped(limits Limits) (names []string) {
	if o.MaxWallTime > limits.WallTime {
		names = append(names, "MaxWallTime")
	}
	if o.MaxDocDisplayCount > int(limits.Files) {
		names = append(names, "MaxDocDisplayCount")
	}
	if o.NumContextLines > maxContext {
		names = append(names, "NumContextLines")
	}
	return names
}

// ignored names the options that are set but have no effect.
func (o *searchOptions) ignored() (names []string) {
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"FlushWallTime", o.FlushWallTime != 0},
		{"UseBM25Scoring", o.UseBM25Scoring},
		{"Trace", o.Trace},
		{"SpanContext", len(o.SpanContext) > 0},
	} {
		if option.set {
			names = append(names, option.name)
		}
	}
	return names
}
