package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func TestMain(m *testing.M) {
	// The expressions of lexers share a clock, which stops by itself some time after the last match.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

const testCommit = "0123456789abcdef0123456789abcdef01234567"

// fake answers searches by its fields, and has files.
type fake struct {
	unlisted bool // lists of repos are incomplete
	search   *searchv1.SearchResponse
	err      error
	// mu guards asked: a browser sends several requests at once.
	mu    sync.Mutex
	asked []*searchv1.SearchRequest
	// files are contents by repo and path. Every file is on main, and on dev too if its
	// path begins with dev.
	files map[string]map[string]string
	stale []*ingestv1.RepoStatus
	// language of all files.
	language string
}

// Search implements Answers. Without an answer it finds paths by the last f: of a query.
func (f *fake) Search(_ context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	f.mu.Lock()
	f.asked = append(f.asked, req)
	f.mu.Unlock()
	if _, err := searchapi.Parse(req.Query, syntaxVersion); err != nil {
		return nil, err
	}
	if f.search != nil || f.err != nil {
		return f.search, f.err
	}
	resp := &searchv1.SearchResponse{Coverage: &searchv1.Coverage{Complete: true}}
	terms := fields.FindAllStringSubmatch(req.Query, -1)
	for repo, files := range f.files {
		if len(files) == 0 && req.Query == only(repo) {
			resp.Empty = &searchv1.Empty{Searched: []*searchv1.SearchedRepo{{Name: repo, Branches: []*searchv1.BranchEntry{{Name: "main", Commit: testCommit}}}}}
		}
		for path := range files {
			if !strings.Contains(req.Query, regexp.QuoteMeta(repo)) && !strings.Contains(req.Query, regexp.QuoteMeta(regexp.QuoteMeta(repo))) || !matches(path, terms) {
				continue
			}
			branches := []string{"main"}
			if strings.HasPrefix(path, "dev") {
				branches = append(branches, "dev")
			}
			resp.Files = append(resp.Files, &searchv1.FileMatch{Repo: repo, Path: []byte(path), Branches: branches})
		}
	}
	return resp, nil
}

var fields = regexp.MustCompile(`(-?)f:("(?:[^"\\]|\\.)*"|\S+)`)

// matches reports whether a path matches all f: and no -f:.
func matches(path string, terms [][]string) bool {
	for _, term := range terms {
		expression := term[2]
		if strings.HasPrefix(expression, `"`) {
			expression = regexp.MustCompile(`\\(.)`).ReplaceAllString(strings.Trim(expression, `"`), "$1")
		}
		if regexp.MustCompile(expression).MatchString(path) == (term[1] == "-") {
			return false
		}
	}
	return true
}

// List implements Answers.
func (f *fake) List(_ context.Context, req *searchv1.ListRequest) (*searchv1.ListResponse, error) {
	if _, err := searchapi.Parse(req.Query, syntaxVersion); err != nil {
		return nil, err
	}
	resp := &searchv1.ListResponse{Coverage: &searchv1.Coverage{Complete: !f.unlisted}}
	for repo, files := range f.files {
		if len(files) == 0 { // a list has the repos in which a file matches
			continue
		}
		resp.Repos = append(resp.Repos, &searchv1.RepoEntry{
			Name: repo, Documents: uint64(len(files)), Url: "https://" + repo + ".git",
			Branches: []*searchv1.BranchEntry{{Name: "main", Commit: testCommit}, {Name: "dev", Commit: strings.Repeat("d", 40)}},
		})
	}
	slices.SortFunc(resp.Repos, func(a, b *searchv1.RepoEntry) int { return strings.Compare(a.Name, b.Name) })
	return resp, f.err
}

// GetFile implements Answers. It gives at most a part of a file at once.
func (f *fake) GetFile(_ context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	text, ok := f.files[req.Repo][string(req.Path)]
	branch := "main"
	if strings.HasPrefix(string(req.Path), "dev only") {
		branch = "dev"
	}
	if !ok || branch == "dev" && req.Branch == "main" {
		return nil, searchapi.FileNotFound(&searchv1.GetFileRequest{Repo: req.Repo, Path: req.Path, Branch: req.Branch}, "", f.nearest(req.Repo, string(req.Path)))
	}
	part := text[min(int(req.Offset), len(text)):]
	return &searchv1.GetFileResponse{
		Content: []byte(part[:min(len(part), int(req.MaxBytes)/2)]), SizeBytes: uint64(len(text)), Blob: req.Path, Language: f.language, Branches: []string{branch},
	}, nil
}

// nearest are the paths of a repo that differ least from one, without their folders.
func (f *fake) nearest(repo, path string) []string {
	return searchapi.Nearest(path, slices.Sorted(maps.Keys(f.files[repo])))
}

// ListTree implements Answers. A folder has at most as many entries as the request wants.
func (f *fake) ListTree(_ context.Context, req *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error) {
	if f.err != nil {
		return nil, f.err
	}
	resp := &searchv1.ListTreeResponse{Coverage: &searchv1.Coverage{Complete: true}}
	for _, path := range slices.Sorted(maps.Keys(f.files[req.Repo])) {
		below, inside := strings.CutPrefix(path, string(req.Path))
		if !inside || req.Branch == "main" && strings.HasPrefix(path, "dev only") || req.Branch == "dev" && !strings.HasPrefix(path, "dev") {
			continue
		}
		e := &searchv1.TreeEntry{Path: []byte(path), Kind: searchv1.TreeEntry_KIND_FILE}
		if name, _, deeper := strings.Cut(below, "/"); deeper {
			e.Path, e.Kind, e.Files = []byte(string(req.Path)+name+"/"), searchv1.TreeEntry_KIND_FOLDER, 1
		}
		switch n := len(resp.Entries); {
		case n > 0 && string(resp.Entries[n-1].Path) == string(e.Path):
			resp.Entries[n-1].Files++
		case n == int(req.MaxEntries):
			resp.NextPageToken = []byte("more")
		default:
			resp.Entries = append(resp.Entries, e)
		}
	}
	if len(resp.Entries) == 0 && len(req.Path) > 0 {
		return nil, searchapi.FolderNotFound(req, req.Branch, f.nearest(req.Repo, string(req.Path)))
	}
	return resp, nil
}

// Definitions implements Answers: every name is defined on the second line of each file of its repo.
func (f *fake) Definitions(_ context.Context, req *searchv1.DefinitionsRequest) (*searchv1.DefinitionsResponse, error) {
	if f.err != nil {
		return nil, f.err
	}
	resp := &searchv1.DefinitionsResponse{Statistics: &searchv1.Statistics{}, Coverage: &searchv1.Coverage{Complete: true}}
	group := &searchv1.RepoMatches{Repo: req.From.Repo}
	for _, path := range slices.Sorted(maps.Keys(f.files[req.From.Repo])) {
		at := &searchv1.Location{ByteOffset: 5, LineNumber: 2, Column: 1}
		group.Files = append(group.Files, &searchv1.FileMatch{Path: []byte(path), Branches: []string{req.From.Branch}, MatchCount: 1, Chunks: []*searchv1.ChunkMatch{{
			Content: []byte(req.Name + "\n"), ContentStart: at, Ranges: []*searchv1.Range{{Start: at, End: &searchv1.Location{ByteOffset: 5 + uint32(len(req.Name)), LineNumber: 2}}},
		}}})
	}
	resp.Repos, resp.Likely = []*searchv1.RepoMatches{group}, len(group.Files) == 1
	return resp, nil
}

// Repos implements Answers.
func (f *fake) Repos(context.Context) (int, error) { return len(f.files), f.err }

// RepoNames implements Answers.
func (f *fake) RepoNames(_ context.Context, text string) (iter.Seq[string], error) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(f.files)), func(name string) bool { return !strings.Contains(name, text) })
	return slices.Values(names), f.err
}

// NearestRepos implements Answers.
func (f *fake) NearestRepos(_ context.Context, name string) ([]string, error) {
	return searchapi.Nearest(name, slices.Sorted(maps.Keys(f.files))), f.err
}

// Languages implements Answers.
func (f *fake) Languages(context.Context) ([]string, error) {
	return []string{"C", "C++", "Go", "Groovy"}, f.err
}

// Unindexed implements Answers.
func (*fake) Unindexed(_ context.Context, repo string) string {
	if repo == "host/new" {
		return `"host/new" is registered`
	}
	return ""
}

// ListStaleRepos implements Statuses.
func (f *fake) ListStaleRepos(context.Context, *ingestv1.ListStaleReposRequest) (*ingestv1.ListStaleReposResponse, error) {
	return &ingestv1.ListStaleReposResponse{Repos: f.stale}, nil
}

// good is the token that is admitted.
const good = "good"

// serve makes a server of the pages. With tokens it asks for them.
func (f *fake) serve(t testing.TB, tokens bool) http.Handler {
	t.Helper()
	cfg := Config{Open: func() Answers { return f }, Statuses: f, WallTime: time.Minute, Log: slog.New(slog.DiscardHandler)}
	if tokens {
		cfg.Admit = func(_ context.Context, token access.Text) error {
			if token != good {
				return errors.New("refused")
			}
			return nil
		}
	}
	return routes(t, cfg)
}

// routes are the pages of a configuration, for callers who may see everything.
func routes(t testing.TB, cfg Config) http.Handler {
	t.Helper()
	pages := New(cfg)
	t.Cleanup(pages.Close)
	mux := http.NewServeMux()
	guarded, open := pages.Routes()
	for pattern, h := range guarded {
		mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Anyone)))
		}))
	}
	for pattern, h := range open {
		mux.Handle(pattern, h)
	}
	return mux
}

// visit asks for a page.
func visit(t testing.TB, h http.Handler, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// show visits a page that must exist, and checks the rules for every page.
func show(t testing.TB, h http.Handler, target string) string {
	t.Helper()
	w := visit(t, h, target)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", target, w.Code, textOf(w.Body.String()))
	}
	harmless(t, target, w.Body.String())
	return w.Body.String()
}

// harmless fails for a page with anything that strangers could have put there.
func harmless(t testing.TB, target, page string) {
	t.Helper()
	if text := textOf(page); strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unseen(r) }) {
		t.Errorf("%s: the page shows a character that cannot be seen: %q", target, text)
	}
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				t.Errorf("%s: %v", target, z.Err())
			}
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			for _, a := range token.Attr {
				if problem := harm(token.Data, a); problem != "" {
					t.Errorf("%s: <%s %s=%q>: %s", target, token.Data, a.Key, a.Val, problem)
				}
			}
			if token.Data == "style" || token.Data == "iframe" || token.Data == "img" || token.Data == "script" && len(token.Attr) == 0 {
				t.Errorf("%s: <%s>", target, token.Data)
			}
		}
	}
}

// harm says what an attribute could do.
func harm(tag string, a html.Attribute) string {
	switch {
	case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc":
		return "an attribute that the policy forbids"
	case tag == "script" && a.Key == "src" && !strings.HasPrefix(a.Val, "/assets/page.js?v="):
		return "another script"
	case (a.Key == "href" || a.Key == "src" || a.Key == "action") && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "https://") &&
		!strings.HasPrefix(a.Val, "http://") && !strings.HasPrefix(a.Val, "mailto:"):
		return "leads elsewhere"
	case (a.Key == "href" || a.Key == "action") && strings.HasPrefix(a.Val, "//"):
		return "leads to another host"
	}
	return ""
}

// textOf is what a page shows, without its tags.
func textOf(page string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			b.Write(z.Text())
		}
	}
}

// contains fails unless a page has all of the texts.
func contains(t testing.TB, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) && !strings.Contains(html.UnescapeString(page), text) {
			t.Errorf("no %q in\n%s", text, page)
		}
	}
}

// chunk is lines of a file in which a text is found.
func chunk(content, text string, line uint32) *searchv1.ChunkMatch {
	c := &searchv1.ChunkMatch{Content: []byte(content), ContentStart: &searchv1.Location{ByteOffset: 1000, LineNumber: line, Column: 1}}
	for at := 0; ; {
		i := strings.Index(content[at:], text)
		if i < 0 {
			return c
		}
		start := uint32(1000 + at + i)
		c.Ranges = append(c.Ranges, &searchv1.Range{Start: &searchv1.Location{ByteOffset: start}, End: &searchv1.Location{ByteOffset: start + uint32(len(text))}})
		at += i + len(text)
	}
}

// found is a complete answer.
func found(files ...*searchv1.FileMatch) *searchv1.SearchResponse {
	resp := &searchv1.SearchResponse{
		Files: files, Statistics: &searchv1.Statistics{FilesMatched: uint64(len(files)), CountsExact: true},
		Coverage: &searchv1.Coverage{Complete: true, Requested: 1, Searched: 1},
	}
	for _, f := range files {
		resp.Statistics.Matches += f.MatchCount
	}
	return resp
}

// hit is a file with a chunk.
func hit(repo, path string, chunks ...*searchv1.ChunkMatch) *searchv1.FileMatch {
	f := &searchv1.FileMatch{Repo: repo, Path: []byte(path), Branches: []string{"main"}, Commit: testCommit, Language: "Go", Chunks: chunks}
	for _, c := range chunks {
		f.MatchCount += uint64(len(c.Ranges))
	}
	return f
}

// lines are n numbered lines.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}
