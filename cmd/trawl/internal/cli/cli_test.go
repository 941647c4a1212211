package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// scripted is a router that answers by a script and records what it was asked.
type scripted struct {
	searchv1.UnimplementedSearchServiceServer
	ingestv1.UnimplementedIngestServiceServer
	adminv1.UnimplementedAdminServiceServer
	answer    *searchv1.SearchResponse
	failure   error
	statuses  []*ingestv1.RepoStatus
	facts     *ingestv1.RepoFacts // of each repo
	repos     []*searchv1.RepoEntry
	before    []*searchv1.RepoEntry // the list of repos until one is put
	searched  *searchv1.SearchRequest
	put       *ingestv1.PutRepoRequest
	deleted   string
	letters   []*ingestv1.DeadLetter
	retried   []string
	listPages int
	listed    *searchv1.Coverage // of lists of indexes; nil: complete
	indexesOf string             // the query of the last one
	stale     []*ingestv1.ListStaleReposRequest
	reindexed []*adminv1.ReindexRepoRequest
	searchers [][]*adminv1.Searcher
	drained   []*adminv1.DrainSearcherRequest
	limits    []*adminv1.SetLimitRequest
	places    []string // calls for places of names, with name and query
}

func (s *scripted) Search(_ context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	s.searched = req
	return s.answer, s.failure
}

func (s *scripted) StreamList(req *searchv1.StreamListRequest, stream grpc.ServerStreamingServer[searchv1.StreamListResponse]) error {
	s.indexesOf = req.GetList().GetQuery()
	for i := range s.repos {
		if err := stream.Send(&searchv1.StreamListResponse{Repos: s.repos[i : i+1]}); err != nil {
			return err
		}
	}
	coverage := s.listed
	if coverage == nil {
		coverage = &searchv1.Coverage{Complete: true}
	}
	return stream.Send(&searchv1.StreamListResponse{Coverage: coverage})
}

// List refuses queries that do not select repos by one name.
func (s *scripted) List(_ context.Context, req *searchv1.ListRequest) (*searchv1.ListResponse, error) {
	q, err := query.Parse(req.GetQuery(), query.ParseOptions{})
	if _, ok := q.(*query.Repo); !ok {
		return nil, status.Errorf(codes.InvalidArgument, "%s: %v, %v", req.GetQuery(), q, err)
	}
	if s.put == nil {
		return &searchv1.ListResponse{Repos: s.before}, nil
	}
	return &searchv1.ListResponse{Repos: s.repos}, nil
}

func (s *scripted) PutRepo(_ context.Context, req *ingestv1.PutRepoRequest) (*ingestv1.PutRepoResponse, error) {
	s.put = req
	return &ingestv1.PutRepoResponse{Name: "example.org/r", Epoch: 2}, s.failure
}

func (s *scripted) DeleteRepo(_ context.Context, req *ingestv1.DeleteRepoRequest) (*ingestv1.DeleteRepoResponse, error) {
	if req.GetName() == "xx" {
		return nil, searchapi.NotFound("name", "there is no such repo", []string{"pond"})
	}
	s.deleted = req.GetName()
	return &ingestv1.DeleteRepoResponse{}, nil
}

// ListRepos returns one repo a page, so that a client that ignores next_after fails.
func (s *scripted) ListRepos(_ context.Context, req *ingestv1.ListReposRequest) (*ingestv1.ListReposResponse, error) {
	for i, st := range s.statuses {
		if st.GetName() > req.GetAfter() {
			s.listPages++
			next := ""
			if i < len(s.statuses)-1 {
				next = st.GetName()
			}
			return &ingestv1.ListReposResponse{Repos: s.statuses[i : i+1], NextAfter: next}, nil
		}
	}
	return &ingestv1.ListReposResponse{}, nil
}

func (s *scripted) WatchRepo(_ *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
	for _, st := range s.statuses {
		if err := stream.Send(&ingestv1.WatchRepoResponse{Status: st}); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// trawl runs a command line against a router that follows the script.
func trawl(t *testing.T, s *scripted, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	return serveAndRun(t, func(srv *grpc.Server) {
		searchv1.RegisterSearchServiceServer(srv, s)
		ingestv1.RegisterIngestServiceServer(srv, s)
		adminv1.RegisterAdminServiceServer(srv, s)
	}, args...)
}

// serveAndRun runs a command line against a server.
func serveAndRun(t *testing.T, register func(*grpc.Server), args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	return run(t, []string{"TRAWL_ADDR=" + serve(t, register)}, args...)
}

// serve starts a server, which ends with the test, and returns its address.
func serve(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	register(srv)
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(srv.Stop)
	return l.Addr().String()
}

// run runs a command line without any router.
func run(t *testing.T, env []string, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	exit = Run(t.Context(), args, Process{Out: &out, Err: &errs, Environ: env})
	return exit, out.String(), errs.String()
}

func oneFile() *searchv1.SearchResponse {
	at := func(n uint32) *searchv1.Location {
		return &searchv1.Location{ByteOffset: n, LineNumber: 3, Column: n + 1}
	}
	return &searchv1.SearchResponse{
		Files: []*searchv1.FileMatch{{
			Repo: "example.org/r", Path: []byte("a.go"), MatchCount: 1,
			Chunks: []*searchv1.ChunkMatch{{Content: []byte("a needle\n"), ContentStart: at(0), Ranges: []*searchv1.Range{{Start: at(2), End: at(8)}}}},
		}},
		Statistics: &searchv1.Statistics{FilesMatched: 1, Matches: 1, CountsExact: true},
		Coverage:   &searchv1.Coverage{Complete: true, Requested: 1, Searched: 1},
	}
}

func TestSearch(t *testing.T) {
	s := &scripted{answer: oneFile()}
	exit, out, errs := trawl(t, s, "search", "--heading", "--max-files", "7", "-C", "2", "--require-complete", "a", "needle")
	if exit != 0 || errs != "" {
		t.Fatalf("exit %d: %s", exit, errs)
	}
	if !strings.HasPrefix(out, "example.org/r a.go\n     3  a needle\n\n1 match in 1 file, 1 of 1 shard searched") {
		t.Errorf("printed %q", out)
	}
	o := s.searched.GetOptions()
	if s.searched.GetQuery() != "a needle" || o.GetMaxFiles() != 7 || o.GetContextLines() != 3 || !o.GetRequireComplete() {
		t.Errorf("asked for %v", s.searched)
	}
}

func TestSearchAsJSON(t *testing.T) {
	_, out, _ := trawl(t, &scripted{answer: oneFile()}, "search", "--json", "needle")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %s", len(lines), out)
	}
	for i, kind := range []string{"file", "summary"} {
		var object map[string]any
		if err := json.Unmarshal([]byte(lines[i]), &object); err != nil || object["type"] != kind {
			t.Errorf("line %d is %s (%v)", i+1, lines[i], err)
		}
	}
}

func withDetails(t *testing.T, code codes.Code, message string, details ...protoadapt.MessageV1) error {
	t.Helper()
	s, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

func TestErrorsArePointedOut(t *testing.T) {
	for _, tt := range []struct {
		name    string
		failure error
		want    string
	}{
		{
			"syntax", withDetails(t, codes.InvalidArgument, "query: expected )", protoadapt.MessageV1Of(&searchv1.QueryError{Position: 4, Expected: ")"})),
			"trawl: expected )\n  (é b\n     ^\n",
		},
		{
			"field", withDetails(t, codes.InvalidArgument, "invalid request", protoadapt.MessageV1Of(&errdetails.BadRequest{
				FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "options.max_files", Description: "at most 10000"}},
			})),
			"trawl: invalid request\n  options.max_files: at most 10000\n",
		},
		{
			"argument", searchapi.FieldError(codes.InvalidArgument, "value", `bad value "many"`),
			"trawl: bad value \"many\"\n",
		},
		{
			"rule", withDetails(t, codes.InvalidArgument, "name: must be shorter", protoadapt.MessageV1Of(&errdetails.BadRequest{
				FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "name", Description: "must be shorter", Reason: "STRING_MAX_LEN"}},
			})),
			"trawl: name: must be shorter\n",
		},
		{
			"coverage", withDetails(t, codes.FailedPrecondition, "incomplete", protoadapt.MessageV1Of(&searchv1.Coverage{
				Uncovered: []*searchv1.UncoveredShard{{Repos: []string{"r"}, Reason: searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT, Message: "\x1bbad"}},
			})),
			"trawl: incomplete\n  not searched: 1 shard of r: damaged, being fetched again: \\x1bbad\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exit, _, errs := trawl(t, &scripted{failure: tt.failure}, "search", "(é b")
			if exit != 2 || errs != tt.want {
				t.Errorf("exit %d, printed %q, want %q", exit, errs, tt.want)
			}
		})
	}
}

func TestNoRouter(t *testing.T) {
	exit, _, errs := run(t, nil, "search", "--addr", "127.0.0.1:1", "x")
	if exit != 2 || !strings.Contains(errs, "cannot reach Trawl at 127.0.0.1:1") {
		t.Errorf("exit %d: %s", exit, errs)
	}
	// What a router says of the servers behind it does not mean that it cannot be reached.
	exit, _, errs = trawl(t, &scripted{failure: status.Error(codes.Unavailable, "etcd is away")}, "search", "x")
	if exit != 2 || !strings.Contains(errs, "cannot answer now: etcd is away\n") || strings.Contains(errs, "reach") {
		t.Errorf("exit %d: %s", exit, errs)
	}
}

// TestAddressOfHTTP: a command that is given the HTTP address of a router, such as a browser shows, asks for the gRPC address.
func TestAddressOfHTTP(t *testing.T) {
	pages := httptest.NewServer(http.NotFoundHandler())
	defer pages.Close()
	exit, _, errs := run(t, nil, "search", "--addr", pages.Listener.Addr().String(), "x")
	if exit != 2 || !strings.Contains(errs, "this is an HTTP address") || !strings.Contains(errs, "gRPC") {
		t.Errorf("exit %d: %s", exit, errs)
	}
}

func TestReposJoinsPagesWithIndexes(t *testing.T) {
	s := &scripted{
		statuses: []*ingestv1.RepoStatus{
			{Name: "a", State: ingestv1.State_STATE_PUBLISHED, Generation: 4},
			{Name: "b", State: ingestv1.State_STATE_FAILED, Reason: "no such branch"},
		},
		repos: []*searchv1.RepoEntry{{
			Name: "a", Documents: 10, Branches: []*searchv1.BranchEntry{{Name: "main", Commit: strings.Repeat("c", 40)}},
			Languages:    []*searchv1.LanguageShare{{Language: "C", Bytes: 1}, {Language: "Go", Bytes: 3}},
			SkippedFiles: []*searchv1.SkippedFile{{Path: []byte("x.png"), Reason: searchv1.SkipReason_SKIP_REASON_BINARY, SizeBytes: 7}},
		}},
	}
	exit, out, errs := trawl(t, s, "repos", "--skipped", "5")
	if exit != 0 || s.listPages != 2 {
		t.Fatalf("exit %d after %d pages: %s", exit, s.listPages, errs)
	}
	for _, want := range []string{"a     published  4           cccccccccccc  10", "Go 75%, C 25%", "b: no such branch", "a: x.png: binary, 7 B"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for prefix, want := range map[string]string{"": "", "host.org/a": `r:"^host\\.org/a"`} {
		if exit, _, errs := trawl(t, s, "repos", prefix); exit != 0 || s.indexesOf != want {
			t.Errorf("prefix %q: exit %d, asked for the indexes of %q, want %q\n%s", prefix, exit, s.indexesOf, want, errs)
		}
	}
	_, out, _ = trawl(t, s, "repos", "--json", "--skipped", "5")
	var first struct {
		Name  string
		State string
		Index struct {
			Languages []struct{ Language, Bytes string }
			Skipped   []struct {
				Path string `json:"path_text"`
			} `json:"skipped_files"`
		}
	}
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&first); err != nil || first.Name != "a" || first.State != "STATE_PUBLISHED" ||
		len(first.Index.Languages) != 2 || first.Index.Languages[1].Bytes != "3" || first.Index.Skipped[0].Path != "x.png" {
		t.Errorf("JSON %+v, %v", first, err)
	}
	if lines := strings.Split(out, "\n"); len(lines) != 3 || !json.Valid([]byte(lines[1])) || strings.Contains(lines[1], "index") {
		t.Errorf("without an index: %s", out)
	}
}

// TestReposWithoutTheirIndexes: where indexes cannot be read, repos are listed without the numbers that are in them, and a note says so.
func TestReposWithoutTheirIndexes(t *testing.T) {
	s := &scripted{
		statuses: []*ingestv1.RepoStatus{{Name: "a", State: ingestv1.State_STATE_PUBLISHED, Generation: 4}, {Name: "b", State: ingestv1.State_STATE_QUEUED}},
		listed:   &searchv1.Coverage{Requested: 3, Searched: 1, Failed: 1, NotReached: 1},
	}
	note := "incomplete: 2 of 3 shards were not searched, so documents, sizes and languages of some repos are missing\n"
	exit, out, errs := trawl(t, s, "repos")
	if exit != 0 || errs != note || !strings.Contains(out, "\na     published  4           -       -          -     -      -    \n") {
		t.Errorf("exit %d, printed %q and\n%s", exit, errs, out)
	}
	if _, _, errs := trawl(t, s, "repos", "--json"); errs != note {
		t.Errorf("with JSON the note is %q", errs)
	}
}

// ListStaleRepos returns one repo a page.
func (s *scripted) ListStaleRepos(_ context.Context, req *ingestv1.ListStaleReposRequest) (*ingestv1.ListStaleReposResponse, error) {
	s.stale = append(s.stale, req)
	if len(s.statuses) > 0 && s.statuses[0].GetFreshness() == nil {
		return &ingestv1.ListStaleReposResponse{}, nil
	}
	at, _ := strconv.Atoi(req.GetAfter())
	if at+1 < len(s.statuses) {
		return &ingestv1.ListStaleReposResponse{Repos: s.statuses[at : at+1], NextAfter: strconv.Itoa(at + 1)}, nil
	}
	return &ingestv1.ListStaleReposResponse{Repos: s.statuses[at:]}, nil
}

func (s *scripted) GetRepo(_ context.Context, req *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
	if req.GetName() == "xx" {
		return nil, searchapi.NotFound("name", "there is no such repo", []string{"pond"})
	}
	return &ingestv1.GetRepoResponse{Status: s.statuses[0], Branches: []string{"main", "v*"}, Facts: s.facts}, nil
}

func TestStaleRepos(t *testing.T) {
	since := timestamppb.New(time.Now().Add(-time.Hour))
	seen := &ingestv1.Freshness{
		Branch: "main", SeenCommit: strings.Repeat("a", 40), SeenAt: since, SeenBy: ingestv1.SeenBy_SEEN_BY_WEBHOOK, IndexedCommit: strings.Repeat("b", 40), BehindSince: since,
	}
	s := &scripted{statuses: []*ingestv1.RepoStatus{
		{Name: "x", State: ingestv1.State_STATE_FAILED, Reason: "no such branch", Freshness: seen}, {Name: "y", Freshness: seen}, {Name: "z", Freshness: seen},
	}, facts: &ingestv1.RepoFacts{Rank: 5, Archived: true, Meta: map[string]string{"team": "a"}}}
	exit, out, errs := trawl(t, s, "repos", "--stale", "--older-than", "5m", "--limit", "2", "pre")
	if exit != 0 || len(s.stale) != 2 || s.stale[1].GetPageSize() != 1 || s.stale[0].GetOlderThan().AsDuration() != 5*time.Minute || s.stale[0].GetPrefix() != "pre" {
		t.Fatalf("exit %d, asked %v: %s", exit, s.stale, errs)
	}
	for _, want := range []string{"x     1h0m", "failed  main    aaaaaaaaaaaa  webhook  bbbbbbbbbbbb  no such branch", "there are more"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if _, out, _ = trawl(t, s, "repos", "--older-than", "1s", "--limit", "0", "--json"); strings.Count(out, "\n") != 3 || !strings.Contains(out, `"seen_by":`) {
		t.Errorf("JSON %s", out)
	}
	none := &scripted{statuses: []*ingestv1.RepoStatus{{Name: "pre"}}}
	for _, tt := range [][2]string{{"--stale", "no repo is behind\n"}, {"--older-than=5m pre", "no repo whose name begins with \"pre\" is behind for more than 5m0s\n"}, {"--stale --json", ""}} {
		if exit, out, errs := trawl(t, none, append([]string{"repos"}, strings.Split(tt[0], " ")...)...); exit != 0 || out != "" || errs != tt[1] {
			t.Errorf("%s: exit %d, printed %q and %q", tt[0], exit, out, errs)
		}
	}
	if _, out, _ = trawl(t, s, "repos", "status", "x"); !strings.Contains(out, "by webhook") || !strings.Contains(out, "wanted      main v*, rank 5, archived, meta.team a\n") || !strings.Contains(out, "lag         1h0m") {
		t.Errorf("status %s", out)
	}
	if exit, _, errs := trawl(t, s, "repos", "status", "xx"); exit != 1 || !strings.Contains(errs, `"pond"`) {
		t.Errorf("exit %d, without the nearest name: %s", exit, errs)
	}
}

// ListDeadLetters returns one letter a page.
func (s *scripted) ListDeadLetters(_ context.Context, req *ingestv1.ListDeadLettersRequest) (*ingestv1.ListDeadLettersResponse, error) {
	if req.GetAfter() >= uint64(len(s.letters)) {
		return &ingestv1.ListDeadLettersResponse{}, nil
	}
	return &ingestv1.ListDeadLettersResponse{Letters: s.letters[req.GetAfter() : req.GetAfter()+1], NextAfter: req.GetAfter() + 1}, nil
}

func (s *scripted) GetDeadLetter(_ context.Context, req *ingestv1.GetDeadLetterRequest) (*ingestv1.GetDeadLetterResponse, error) {
	for _, l := range s.letters {
		if l.GetName() == req.GetName() {
			return &ingestv1.GetDeadLetterResponse{Letter: l}, nil
		}
	}
	return nil, status.Error(codes.NotFound, "the repo has no job that was given up")
}

func (s *scripted) RetryDeadLetter(ctx context.Context, req *ingestv1.RetryDeadLetterRequest) (*ingestv1.RetryDeadLetterResponse, error) {
	got, err := s.GetDeadLetter(ctx, &ingestv1.GetDeadLetterRequest{Name: req.GetName()})
	if err != nil {
		return nil, err
	}
	s.retried = append(s.retried, req.GetName())
	return &ingestv1.RetryDeadLetterResponse{Epoch: got.GetLetter().GetEpoch()}, nil
}

func TestJobs(t *testing.T) {
	s := &scripted{}
	for i, name := range []string{"b", "a"} {
		s.letters = append(s.letters, &ingestv1.DeadLetter{
			Name: name, Epoch: uint64(i + 3), Attempts: 5, Reason: strings.Repeat("long ", 30) + "\nend", GivenUpAt: timestamppb.New(time.Now().Add(-time.Hour)),
		})
	}
	for _, c := range []struct {
		args []string
		exit int
		want []string
	}{
		{[]string{"list"}, 0, []string{"b     3        5         1h0m", "a     4        5         1h0m", "long long"}},
		{[]string{"list", "--json"}, 0, []string{`{"name":"b",`, `"epoch":"3"`, `\nend"`}},
		{[]string{"show", "a"}, 0, []string{"request 4 was given up 1h0m", "after 5 attempts", "end"}},
		{[]string{"show", "c"}, 1, []string{"no job that was given up"}},
		{[]string{"retry", "c", "a"}, 1, []string{"c: not tried again: the repo has no job", "a: request 4 is tried again"}},
		{[]string{"retry", "--all"}, 0, []string{"b: request 3 is tried again", "a: request 4 is tried again"}},
		{[]string{"retry"}, 2, []string{"--all"}},
		{[]string{"retry", "--all", "a"}, 2, []string{"--all"}},
	} {
		exit, out, errs := trawl(t, s, append([]string{"jobs"}, c.args...)...)
		for _, want := range c.want {
			if exit != c.exit || !strings.Contains(out+errs, want) {
				t.Errorf("jobs %v: exit %d, want %d and %q in\n%s%s", c.args, exit, c.exit, want, out, errs)
			}
		}
		if strings.Count(out+errs, "no job") > 1 {
			t.Errorf("jobs %v gives one reason twice:\n%s%s", c.args, out, errs)
		}
	}
	if want := []string{"a", "b", "a"}; !slices.Equal(s.retried, want) {
		t.Errorf("retried %v, want %v", s.retried, want)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"serch"}, {"search"}, {"search", "--no-such-flag", "x"}, {"search", "--color", "maybe", "x"}, {"index"}, {"version", "x"}} {
		if exit, _, errs := run(t, nil, args...); exit != 2 || !strings.HasPrefix(errs, "trawl: ") {
			t.Errorf("trawl %v: exit %d, %q", args, exit, errs)
		}
	}
	for _, args := range [][]string{{"search", "--nosuch"}, {"search", "--max-files=x", "y"}, {"cat", "-q"}, {"repos", "--limit", "1"}, {"repos", "status", "--x"}, {"--x"}} {
		if exit, _, errs := run(t, nil, args...); exit != 2 || !regexp.MustCompile(`; see trawl.* --help\n$`).MatchString(errs) {
			t.Errorf("%q: exit %d: %s", args, exit, errs)
		}
	}
	for _, alone := range []string{"-l", "-c", "--files"} {
		if exit, _, errs := run(t, nil, "search", "--json", alone, "x"); exit != 2 || !strings.Contains(errs, "--json excludes") {
			t.Errorf("--json %s: exit %d, %q", alone, exit, errs)
		}
	}
	for _, name := range []string{"version", "--version"} {
		if exit, out, _ := run(t, nil, name); exit != 0 || !strings.HasPrefix(out, "trawl ") {
			t.Errorf("%s: exit %d, %q", name, exit, out)
		}
	}
	if exit, out, _ := run(t, nil); exit != 0 || !strings.Contains(out, "search") {
		t.Errorf("without arguments: exit %d, %q", exit, out)
	}
}
