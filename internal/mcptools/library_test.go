package mcptools

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// library is an API over one shard: the real engine without services.
type library struct {
	t     testing.TB
	shard *search.Shard
	repos map[string]map[string]string // contents by repo and path
	calls atomic.Int64
	// incomplete makes answers say that a part was not searched.
	incomplete bool
	// branches are the branches that List names.
	branches []string
}

const testCommit = "0123456789abcdef0123456789abcdef01234567"

func newLibrary(t testing.TB, repos map[string]map[string]string) *library {
	t.Helper()
	return newBranches(t, repos, nil)
}

// newBranches is newLibrary with a second branch, dev, of some repos.
func newBranches(t testing.TB, repos, dev map[string]map[string]string) *library {
	t.Helper()
	var object bytes.Buffer
	b, err := build.NewBuilder(&object, build.Options{})
	must(t, err)
	for _, repo := range slices.Sorted(keys(repos)) {
		branches := []docstore.Branch{{Name: "main", Commit: testCommit}}
		if dev[repo] != nil {
			branches = append(branches, docstore.Branch{Name: "dev", Commit: strings.Repeat("d", 40)})
		}
		must(t, b.AddRepo(docstore.Repo{Name: repo, Generation: 1, Branches: branches}))
		for _, path := range slices.Sorted(keys(union(repos[repo], dev[repo]))) {
			content, inMain := repos[repo][path]
			other, inDev := dev[repo][path]
			add := func(content string, branches ...uint32) {
				// Documents of a path come in the order of their ids.
				id := sha256.Sum256([]byte(content))
				id[0] = byte(branches[0])
				must(t, b.Add(build.Document{Path: []byte(path), Content: []byte(content), Branches: branches, OID: id[:20], Language: languageOf(path)}))
			}
			switch {
			case inMain && inDev && content == other:
				add(content, 0, 1)
				continue
			case inMain:
				add(content, 0)
			}
			if inDev {
				add(other, 1)
			}
		}
	}
	_, err = b.Close()
	must(t, err)
	file := filepath.Join(t.TempDir(), "s.trawl")
	must(t, os.WriteFile(file, object.Bytes(), 0o600))
	s, err := search.Open(file)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	l := &library{t: t, shard: s, repos: repos, branches: []string{"main"}}
	if dev != nil {
		l.branches = append(l.branches, "dev")
	}
	return l
}

func languageOf(path string) string {
	if strings.HasSuffix(path, ".go") {
		return "Go"
	}
	return ""
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

var must = testrun.Must

func (l *library) coverage() *searchv1.Coverage {
	if l.incomplete {
		return &searchv1.Coverage{Requested: 2, Searched: 1, NotReached: 1, InPart: 1, Uncovered: []*searchv1.UncoveredShard{
			{Repos: []string{"host/away"}, Reason: searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE, InPart: true},
		}}
	}
	return &searchv1.Coverage{Complete: true, Requested: 1, Searched: 1}
}

func (l *library) query(ctx context.Context, text string) (*search.Query, error) {
	l.calls.Add(1)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q, err := searchapi.Parse(text, 2)
	if err != nil {
		return nil, err
	}
	return search.Prepare(q)
}

// Search implements API.
func (l *library) Search(ctx context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	q, err := l.query(ctx, req.Query)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	var after *search.Key
	if len(req.PageToken) > 0 {
		after = new(search.Key)
		must(l.t, json.Unmarshal(req.PageToken, after))
	}
	asked := searchapi.WithDefaults(req.Options)
	options := searchapi.ShardOptions(asked, after, searchapi.AllRepos())
	result, err := l.shard.Search(ctx, q, options)
	if err != nil {
		return nil, err
	}
	resp := &searchv1.SearchResponse{Statistics: searchapi.Statistics(result.Stats), Coverage: l.coverage(), RevisionToken: []byte("r1")}
	resp.Statistics.CountsExact = resp.Statistics.CountsExact && resp.Coverage.Complete
	if req.Query == "fish language:klingon" {
		resp.Empty = &searchv1.Empty{Hints: []*searchv1.Hint{{Text: "there is no such field", Query: "fish lang:klingon"}}}
	}
	if rest, ok := strings.CutPrefix(req.Query, `content:"$user"`); ok {
		resp.Empty = &searchv1.Empty{Hints: []*searchv1.Hint{
			{Text: "the $ is the end of a line", Query: `content:"\\$user"` + rest}, {Text: "another term", Query: req.Query + " x"}, {Text: "no term to replace"},
		}}
	}
	if strings.HasPrefix(req.Query, "(type:file whale ) ") {
		resp.Empty = &searchv1.Empty{Hints: []*searchv1.Hint{{Text: "no term to replace"}}}
	}
	if req.Query == `b:"mian" type:file` {
		resp.Empty = &searchv1.Empty{Hints: []*searchv1.Hint{{Text: "no such branch", Query: "b:main type:file"}}}
	}
	if result.Stats.FilesMatched == 0 && (strings.HasPrefix(req.Query, "(CARP ) ") || strings.HasSuffix(req.Query, `CARP\\.go$" type:file`)) {
		resp.Empty = &searchv1.Empty{Hints: []*searchv1.Hint{{Text: "a capital", Query: req.Query + " case:no"}, {Text: "another term", Query: req.Query + " x"}}}
	}
	for name, hint := range map[string]string{
		"Crap": `"Crap" is not defined where the query looks; the nearest: "Carp"`,
		"Feed": `"Feed" is defined, and used nowhere that the query looks`,
	} {
		if result.Stats.FilesMatched == 0 && strings.HasPrefix(req.Query, searchapi.DefinitionsOf(name, "")) || strings.HasPrefix(req.Query, searchapi.ReferencesOf(name, "")) {
			resp.Empty = &searchv1.Empty{Hints: []*searchv1.Hint{{Text: hint, Query: "sym:x"}}}
		}
	}
	if resp.Empty == nil && result.Stats.FilesMatched == 0 {
		resp.Empty = &searchv1.Empty{}
	}
	if resp.Empty != nil && !strings.Contains(req.Query, "r:nosuch") {
		resp.Empty.Repos = uint64(len(l.repos))
	}
	for f := range searchapi.Files(result.Files) {
		resp.Files = append(resp.Files, f)
	}
	resp.Files = resp.Files[:searchapi.FittingFiles(resp.Files, int(asked.MaxBytes))]
	if n := len(resp.Files); n > 0 && n < int(result.Stats.FilesMatched) {
		resp.NextPageToken, err = json.Marshal(result.Files[n-1].Key())
		must(l.t, err)
	}
	return resp, nil
}

// List implements API.
func (l *library) List(ctx context.Context, req *searchv1.ListRequest) (*searchv1.ListResponse, error) {
	q, err := l.query(ctx, req.Query)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	result, err := l.shard.List(ctx, q, search.ListOptions{})
	if err != nil {
		return nil, err
	}
	resp := &searchv1.ListResponse{Coverage: l.coverage(), RevisionToken: []byte("r1")}
	for i := range result.Repos {
		entry := searchapi.Entry(&result.Repos[i])
		entry.Branches = nil
		for _, name := range l.branches {
			entry.Branches = append(entry.Branches, &searchv1.BranchEntry{Name: name, Commit: testCommit})
		}
		resp.Repos = append(resp.Repos, entry)
	}
	slices.SortFunc(resp.Repos, func(a, b *searchv1.RepoEntry) int { return strings.Compare(a.Name, b.Name) })
	return resp, nil
}

// Definitions has those of the whole library in the order of a search, whatever the place.
func (l *library) Definitions(ctx context.Context, req *searchv1.DefinitionsRequest) (*searchv1.DefinitionsResponse, error) {
	if _, err := l.GetFile(ctx, &searchv1.GetFileRequest{Repo: req.From.Repo, Path: req.From.Path, Branch: req.From.Branch}); err != nil {
		return nil, err
	}
	found, err := l.Search(ctx, &searchv1.SearchRequest{Query: searchapi.DefinitionsOf(req.Name, req.Query), Options: req.Options})
	if err != nil {
		return nil, err
	}
	resp := &searchv1.DefinitionsResponse{Statistics: found.Statistics, Coverage: found.Coverage}
	for _, f := range found.Files {
		resp.Repos = append(resp.Repos, &searchv1.RepoMatches{Repo: f.Repo, Files: []*searchv1.FileMatch{f}})
	}
	return resp, nil
}

// GetFile implements API.
func (l *library) GetFile(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	l.calls.Add(1)
	files, ok := l.repos[req.Repo]
	if !ok {
		return nil, l.noRepo(req.Repo)
	}
	text, ok := files[string(req.Path)]
	content := []byte(text)
	if !ok {
		return nil, searchapi.FileNotFound(req, "", searchapi.Nearest(string(req.Path), slices.Sorted(keys(files))))
	}
	switch req.Branch {
	case "", "main":
	case "release/1":
		return nil, searchapi.FileNotFound(req, "main", nil)
	default:
		return nil, searchapi.NotFound("branch", fmt.Sprintf("no branch %q is indexed", req.Branch), []string{"main", "release/1"})
	}
	part := content[min(int(req.Offset), len(content)):]
	part = part[:min(len(part), int(req.MaxBytes)/2)]
	return &searchv1.GetFileResponse{
		Content: part, Commit: testCommit, Blob: req.Path, Branches: []string{"main"}, SizeBytes: uint64(len(content)),
	}, ctx.Err()
}

func (l *library) noRepo(name string) error {
	return searchapi.NotFound("repo", fmt.Sprintf("no repo %q is published, or you may not see it", name), searchapi.Nearest(name, slices.Sorted(keys(l.repos))))
}

// ListTree implements API. Its page tokens are paths.
func (l *library) ListTree(ctx context.Context, req *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error) {
	l.calls.Add(1)
	switch {
	case req.Repo == "":
		return nil, status.Error(codes.InvalidArgument, "repo: value length must be at least 1 characters")
	case l.repos[req.Repo] == nil:
		return nil, l.noRepo(req.Repo)
	}
	opts := search.TreeOptions{
		Branch: cmp.Or(req.Branch, "main"), Depth: req.Depth, After: req.PageToken, MaxEntries: int(req.MaxEntries), MaxBytes: int(req.MaxBytes),
	}
	if len(req.Path) > 0 {
		opts.Folder = append(bytes.Clone(req.Path), '/')
	}
	tree, err := l.shard.Tree(ctx, req.Repo, search.Options{}, opts)
	if err != nil {
		return nil, err
	}
	if len(tree.Entries) == 0 && len(req.Path) > 0 && !l.incomplete {
		return nil, searchapi.FolderNotFound(req, opts.Branch, []string{"internal/fish/"})
	}
	resp := &searchv1.ListTreeResponse{Entries: searchapi.TreeEntries(tree), Commit: testCommit, Coverage: l.coverage()}
	if tree.More {
		resp.NextPageToken = tree.Entries[len(tree.Entries)-1].Path
	}
	return resp, nil
}

// everyTool is a configuration with all tools.
func everyTool() Config { return Config{Tools: toolNames()} }

// connect connects a client to the tools over api.
func connect(t testing.TB, api API) *mcp.ClientSession {
	t.Helper()
	server := New(func() API { return api }, everyTool(), "test", slog.New(slog.DiscardHandler))
	here, there := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, there) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, here, nil)
	must(t, err)
	t.Cleanup(func() {
		must(t, session.Close())
		must(t, <-ended)
		cancel()
	})
	return session
}

// reply is an answer as a client gets it.
type reply struct {
	text   string
	data   json.RawMessage
	failed bool
}

type args map[string]any

// tester is a testing.TB or a rapid.T, which prints what it drew if it fails itself.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Context() context.Context
}

// ask calls a tool.
func ask(t tester, session *mcp.ClientSession, tool string, arguments args) reply {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	r := reply{failed: result.IsError}
	for _, c := range result.Content {
		r.text += c.(*mcp.TextContent).Text
	}
	if result.StructuredContent != nil {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(result.StructuredContent); err != nil {
			t.Fatalf("%s %v: %v", tool, arguments, err)
		}
		r.data = bytes.TrimSpace(b.Bytes())
	}
	return r
}

// good calls a tool and fails the test if the answer is an error.
func good(t tester, session *mcp.ClientSession, tool string, arguments args) reply {
	t.Helper()
	r := ask(t, session, tool, arguments)
	if r.failed {
		t.Fatalf("%s %v: %s", tool, arguments, r.text)
	}
	return r
}

// results reads the structured form of grep, search, glob and count.
func (r reply) results(t tester) (of result) {
	t.Helper()
	if err := json.Unmarshal(r.data, &of); err != nil {
		t.Fatalf("%s: %v", r.data, err)
	}
	return of
}
