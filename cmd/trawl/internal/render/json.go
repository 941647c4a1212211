package render

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"time"
	"unicode/utf8"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// JSON prints results for programs: one object a line, first the files, then
// one summary. Text that is not UTF-8 is given in base64 under a second name
// (path_bytes, content_bytes) and the first is left out. It is for one goroutine.
type JSON struct {
	enc *json.Encoder
}

// NewJSON returns a printer to w.
func NewJSON(w io.Writer) *JSON {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &JSON{enc: enc}
}

type fileJSON struct {
	Type        string      `json:"type"` // file
	Repo        string      `json:"repo"`
	Path        string      `json:"path,omitempty"`
	PathBytes   []byte      `json:"path_bytes,omitempty"`
	Branches    []string    `json:"branches"`
	Language    string      `json:"language,omitempty"`
	Commit      string      `json:"commit,omitempty"`
	Blob        string      `json:"blob,omitempty"`
	Score       float64     `json:"score"`
	MatchCount  uint64      `json:"match_count"`
	SkipReason  string      `json:"skip_reason,omitempty"`
	Explanation string      `json:"explanation,omitempty"`
	Missing     []string    `json:"missing_words,omitempty"`
	Chunks      []chunkJSON `json:"chunks"`
}

type chunkJSON struct {
	Content      string       `json:"content"`
	ContentBytes []byte       `json:"content_bytes,omitempty"`
	Start        locationJSON `json:"start"`
	FileName     bool         `json:"file_name,omitempty"`
	Ranges       []rangeJSON  `json:"ranges"`
}

type rangeJSON struct {
	Start locationJSON `json:"start"`
	End   locationJSON `json:"end"`
	// Symbol is what the match is in, Definition is set if it is in its name.
	Symbol     *symbolJSON `json:"symbol,omitempty"`
	Definition bool        `json:"definition,omitempty"`
}

type symbolJSON struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Scope string `json:"scope,omitempty"`
}

type locationJSON struct {
	Byte   uint32 `json:"byte"`
	Line   uint32 `json:"line"`
	Column uint32 `json:"column"`
}

type summaryJSON struct {
	Type            string          `json:"type"` // summary
	Matches         uint64          `json:"matches"`
	Files           uint64          `json:"files"`
	CountsExact     bool            `json:"counts_exact"`
	Complete        bool            `json:"complete"`
	ShardsRequested uint64          `json:"shards_requested"`
	ShardsSearched  uint64          `json:"shards_searched"`
	ShardsPruned    uint64          `json:"shards_pruned"`
	ShardsFailed    uint64          `json:"shards_failed"`
	NotReached      uint64          `json:"shards_not_reached"`
	InPart          uint64          `json:"shards_in_part"` // of those not reached
	Uncovered       []uncoveredJSON `json:"uncovered,omitempty"`
	BytesDecoded    uint64          `json:"bytes_decoded"`
	Seconds         float64         `json:"seconds"`
	More            bool            `json:"more"`
}

type uncoveredJSON struct {
	Digest  string   `json:"digest"`
	Repos   []string `json:"repos"`
	Reason  string   `json:"reason"`
	Message string   `json:"message,omitempty"`
	InPart  bool     `json:"in_part,omitempty"`
}

// File prints one file.
func (j *JSON) File(f *searchv1.FileMatch) error {
	out := fileJSON{
		Type: "file", Repo: f.GetRepo(), Branches: f.GetBranches(), Language: f.GetLanguage(), Commit: f.GetCommit(),
		Blob: hex.EncodeToString(f.GetBlob()), Score: f.GetScore(), MatchCount: f.GetMatchCount(),
		Explanation: f.GetExplanation(), Missing: f.GetMissingWords(), Chunks: []chunkJSON{},
	}
	out.Path, out.PathBytes = TextOrBytes(f.GetPath())
	if f.GetSkipReason() != searchv1.SkipReason_SKIP_REASON_UNSPECIFIED {
		out.SkipReason = searchapi.SkipReason(f.GetSkipReason())
	}
	for _, c := range f.GetChunks() {
		out.Chunks = append(out.Chunks, chunkOf(f, c))
	}
	return j.enc.Encode(out)
}

func chunkOf(f *searchv1.FileMatch, c *searchv1.ChunkMatch) chunkJSON {
	out := chunkJSON{Start: locationOf(c.GetContentStart()), FileName: c.GetFileName(), Ranges: []rangeJSON{}}
	out.Content, out.ContentBytes = TextOrBytes(c.GetContent())
	for _, r := range c.GetRanges() {
		shown := rangeJSON{Start: locationOf(r.GetStart()), End: locationOf(r.GetEnd()), Definition: r.GetDefinition()}
		if s := searchapi.SymbolOf(f, r); s != nil {
			shown.Symbol = &symbolJSON{Name: s.GetName(), Kind: searchapi.SymbolKind(s.GetKind()), Scope: s.GetScope()}
		}
		out.Ranges = append(out.Ranges, shown)
	}
	return out
}

func locationOf(l *searchv1.Location) locationJSON {
	return locationJSON{Byte: l.GetByteOffset(), Line: l.GetLineNumber(), Column: l.GetColumn()}
}

// TextOrBytes returns b as text where it is UTF-8, else as bytes.
func TextOrBytes(b []byte) (string, []byte) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	return "", b
}

// Summary prints the account of the answer.
func (j *JSON) Summary(s *searchv1.Statistics, c *searchv1.Coverage, took time.Duration, more string) error {
	out := summaryJSON{
		Type: "summary", Matches: s.GetMatches(), Files: s.GetFilesMatched(), CountsExact: s.GetCountsExact(),
		Complete: c.GetComplete(), ShardsRequested: c.GetRequested(), ShardsSearched: c.GetSearched(),
		ShardsPruned: c.GetPruned(), ShardsFailed: c.GetFailed(), NotReached: c.GetNotReached(), InPart: c.GetInPart(),
		BytesDecoded: s.GetBytesDecoded(), Seconds: took.Seconds(), More: more != "",
	}
	for _, u := range c.GetUncovered() {
		out.Uncovered = append(out.Uncovered, uncoveredJSON{
			Digest: hex.EncodeToString(u.GetDigest()), Repos: u.GetRepos(),
			Reason: searchapi.EnumWords(u.GetReason().String(), "UNCOVERED_REASON_"), Message: u.GetMessage(), InPart: u.GetInPart(),
		})
	}
	return j.enc.Encode(out)
}
