package zoekt

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// fake gives the same answer to every request, and keeps the last one.
type fake struct {
	mu       sync.Mutex
	keep     func(string, uint32) bool
	searched []*searchv1.SearchRequest
	left     time.Duration // to the deadline of the last call

	search *searchv1.SearchResponse
	list   *searchv1.ListResponse
	files  map[string]string
	// fetched are the limits of the calls of GetFile.
	fetched []uint64
	names   []string
	err     error
	// full is the error of a caller who has used up its allowance.
	full error
	// found is called after each file of a stream but the account.
	found func(i int)
	// listed is the last request for repos.
	listed *searchv1.ListRequest
}

func (f *fake) Looking(context.Context) (func(), error) { return func() {}, f.full }

func (f *fake) Identified(ctx context.Context) (iter.Seq2[uint32, string], error) {
	return func(yield func(uint32, string) bool) {
		for _, name := range f.names {
			if id := testID(name); id != 0 && !yield(id, name) {
				return
			}
		}
	}, f.note(ctx)
}

func (f *fake) RepoIDs(ctx context.Context) (func(string) uint32, error) { return testID, f.note(ctx) }

// testID is the id of a repo; "without" has none.
func testID(repo string) uint32 {
	if repo == "without" {
		return 0
	}
	return crc32.ChecksumIEEE([]byte(repo))
}

func (f *fake) note(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if deadline, ok := ctx.Deadline(); ok {
		f.left = time.Until(deadline)
	}
	return f.err
}

func (f *fake) Search(ctx context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	f.searched = append(f.searched, req)
	return f.search, f.note(ctx)
}

// EachBatch passes one file a batch, and calls found after each.
func (f *fake) EachBatch(ctx context.Context, req *searchv1.SearchRequest, do func(*searchv1.StreamSearchResponse) error) error {
	resp, err := f.Search(ctx, req)
	if err != nil {
		return err
	}
	for i := range resp.Files {
		if err := do(&searchv1.StreamSearchResponse{Files: resp.Files[i : i+1]}); err != nil {
			return err
		}
		if f.found != nil {
			f.found(i)
		}
	}
	return do(&searchv1.StreamSearchResponse{Statistics: resp.Statistics, Coverage: resp.Coverage, Cut: resp.Cut})
}

func (f *fake) EachRepo(ctx context.Context, req *searchv1.ListRequest, do func([]*searchv1.RepoEntry) error) (*searchv1.Coverage, error) {
	f.listed = req
	if err := f.note(ctx); err != nil {
		return nil, err
	}
	for i := range f.list.GetRepos() {
		if err := do(f.list.Repos[i : i+1]); err != nil {
			return nil, err
		}
	}
	return f.list.GetCoverage(), nil
}

// GetFile is for one call at a time.
func (f *fake) GetFile(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	if err := f.note(ctx); err != nil {
		return nil, err
	}
	content := f.files[string(req.Path)]
	whole := uint64(len(content))
	if most := int(req.MaxBytes); most > 0 && len(content) > most {
		content = content[:most]
	}
	f.fetched = append(f.fetched, req.MaxBytes)
	return &searchv1.GetFileResponse{Content: []byte(content), SizeBytes: whole, Blob: []byte("blob of " + string(req.Path))}, nil
}

var testLimits = Limits{WallTime: time.Minute, Files: 1000, Bytes: 1 << 20}

func (f *fake) handler() *Handler {
	open := func(keep func(string, uint32) bool) Answers { f.keep = keep; return f }
	return New(open, testLimits, slog.New(slog.DiscardHandler))
}

// post sends a body to a handler and reads the answer into a map.
func post(tb testing.TB, h http.Handler, body string) (code int, answer map[string]any) {
	tb.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(tb.Context(), http.MethodPost, "/api/x", strings.NewReader(body)))
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		tb.Fatalf("%s: answer %q: %v", body, w.Body, err)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		tb.Errorf("%s: content type %q", body, got)
	}
	return w.Code, answer
}

// result asks /api/search and returns what it finds.
func (f *fake) result(tb testing.TB, body string) map[string]any {
	tb.Helper()
	code, answer := post(tb, f.handler().Search(), body)
	if code != http.StatusOK {
		tb.Fatalf("%s: status %d, %v", body, code, answer)
	}
	return answer["Result"].(map[string]any)
}

// file is a found file with a match in each of its lines.
func file(repo, path, content string) *searchv1.FileMatch {
	f := &searchv1.FileMatch{
		Repo: repo, Path: []byte(path), Branches: []string{"main"}, Commit: "c0", Language: "Go",
		Blob: []byte("blob of " + path), Score: 2, Explanation: "because",
	}
	c := &searchv1.ChunkMatch{Content: []byte(content), ContentStart: at(content, 0)}
	for _, l := range linesOf(content) {
		c.Ranges = append(c.Ranges, &searchv1.Range{Start: at(content, l.start), End: at(content, l.start+1)})
	}
	f.Chunks, f.MatchCount = []*searchv1.ChunkMatch{c}, uint64(len(c.Ranges))
	return f
}

// found is a complete answer of the files.
func found(files ...*searchv1.FileMatch) *fake {
	return &fake{search: &searchv1.SearchResponse{
		Files: files, Statistics: &searchv1.Statistics{FilesMatched: uint64(len(files))},
		Coverage: &searchv1.Coverage{Complete: true, Requested: 1, Searched: 1},
	}}
}

// names are the names of the files of a result.
func names(result map[string]any) string {
	var list []string
	for _, f := range result["Files"].([]any) {
		list = append(list, f.(map[string]any)["FileName"].(string))
	}
	return strings.Join(list, " ")
}
