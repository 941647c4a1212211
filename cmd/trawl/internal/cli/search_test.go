package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func TestFlagsBecomeTheQuery(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"a", "b"}, "a b"},
		{[]string{"-F", "a[i]++", `"x"`}, `content:"a\\[i\\]\\+\\+ \"x\""`},
		{[]string{"--any", "a", "b"}, "match:any a b"},
		{[]string{"--any", "a", "b", "-t", "go"}, `( match:any a b ) lang:"go"`},
		{[]string{"-w", "a|b"}, `content:"(?P<word>a|b)"`},
		{[]string{"-wF", "a.b"}, `content:"(?P<word>a\\.b)"`},
		{[]string{"-w", "fish_1"}, `content:"(?P<word>\\bfish_1\\b)"`},
		{[]string{"-w", "fisk"}, `content:"(?P<word>fisk)"`},
		{[]string{"-w", "über"}, `content:"(?P<word>über)"`},
		{[]string{"-e", "a b", "-e", `\d`}, `( content:"a b" or content:"\\d" )`},
		{[]string{"-e", "-x", "f:go", "or", "lang:c"}, `( f:go or lang:c ) content:"-x"`},
		{[]string{"-i", "A"}, `( A ) case:no`},
		{[]string{"-s", "a"}, `( a ) case:yes`},
		{[]string{"-i", "-s", "a"}, `( a ) case:yes`},
		{[]string{"-si", "a"}, `( a ) case:no`},
		{[]string{"-i", "-S", "a"}, `a`},
		{[]string{"-g", "", "a"}, `a`},
		{[]string{"-g", "!vendor", "-g", `\[a\].go`, "-g", "/*.go", "a"}, `( a ) ( path:"\\[a\\].go" or path:"/*.go" ) -f:"(?:^|/)vendor(?:/|$)"`},
		{[]string{"-g", "*.go", "-g", "!vendor/", "x"}, `( x ) path:"*.go" -f:"(?:^|/)vendor/"`},
		{[]string{"-g", "*.c", "-g", "*.h", "x"}, `( x ) ( path:"*.c" or path:"*.h" )`},
		{[]string{"-t", "go,c", "-T", "c++", "x"}, `( x ) ( lang:"go" or lang:"c" ) -lang:"c++"`},
		{[]string{"-r", "^a/", "-r", "b", "-b", "HEAD", "x"}, `( x ) ( r:"^a/" or r:"b" ) b:"HEAD"`},
		{[]string{"--files"}, "type:file"},
		{[]string{"--files", "-t", "go", "x"}, `( x ) lang:"go" type:file`},
	} {
		s := &scripted{answer: oneFile()}
		exit, _, errs := trawl(t, s, append([]string{"search"}, tt.args...)...)
		if exit != 0 || s.searched.GetQuery() != tt.want {
			t.Errorf("%q: exit %d, asked for %s, want %s\n%s", tt.args, exit, s.searched.GetQuery(), tt.want, errs)
		}
		if _, err := query.Parse(s.searched.GetQuery(), query.ParseOptions{SyntaxVersion: 2}); err != nil {
			t.Errorf("%q: %v", tt.args, err)
		}
	}
	for _, args := range [][]string{nil, {"--heading", "--no-heading", "x"}, {"-0", "x"}, {"-C", "21", "x"}, {"-nN", "x"}, {"-t", "go"},
		{"-g", "[", "x"}, {"-g", "{a", "x"}, {"-g", "!src/[a", "x"}, {"-g", "*.{c,h", "--files"}, {"-lc", "x"}, {"--files", "-c"},
		{""}, {" "}, {"-g", "!", "x"}, {"-t", "goo", "x"}, {"-T", "goo", "x"}} {
		if exit, _, errs := trawl(t, &scripted{answer: oneFile()}, append([]string{"search"}, args...)...); exit != 2 || errs == "" {
			t.Errorf("%q: exit %d: %s", args, exit, errs)
		}
	}
}

// lake is a file with matches in lines 2, 3 and 7, one by a path alone, and lines around them.
func lake() *searchv1.SearchResponse {
	at := func(line, offset, column uint32) *searchv1.Location {
		return &searchv1.Location{LineNumber: line, ByteOffset: offset, Column: column}
	}
	return &searchv1.SearchResponse{
		Files: []*searchv1.FileMatch{
			{Repo: "r", Path: []byte("a\x1b.go"), MatchCount: 4, Chunks: []*searchv1.ChunkMatch{
				{Content: []byte("one\nfish é fish\r\nfish\nfour\nfive\n"), ContentStart: at(1, 0, 1), Ranges: []*searchv1.Range{
					{Start: at(2, 4, 1), End: at(2, 8, 5)}, {Start: at(2, 12, 8), End: at(2, 16, 12)}, {Start: at(3, 18, 1), End: at(3, 22, 5)},
				}},
				{Content: []byte("six\nfish"), ContentStart: at(8, 60, 1), Ranges: []*searchv1.Range{{Start: at(9, 64, 1), End: at(9, 68, 5)}}},
			}},
			{Repo: "r", Path: []byte("fish.md"), MatchCount: 1, Chunks: []*searchv1.ChunkMatch{
				{Content: []byte("fish.md"), FileName: true, Ranges: []*searchv1.Range{{Start: at(1, 0, 1), End: at(1, 4, 5)}}},
			}},
		},
		Statistics: &searchv1.Statistics{FilesMatched: 2, Matches: 5, CountsExact: true},
		Coverage:   &searchv1.Coverage{Complete: true, Requested: 1, Searched: 1},
	}
}

func TestLinesLikeGrep(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"-o", "--column"}, []string{`r:a\x1b.go:2:1:fish`, `r:a\x1b.go:2:9:fish`, `r:a\x1b.go:3:1:fish`, `r:a\x1b.go:9:1:fish`, `r:fish.md`}},
		{[]string{"-oN"}, []string{`r:a\x1b.go:fish`, `r:a\x1b.go:fish`, `r:a\x1b.go:fish`, `r:a\x1b.go:fish`, `r:fish.md`}},
		{[]string{"-A1"}, []string{
			"r:a\\x1b.go:2:fish é fish\r", `r:a\x1b.go:3:fish`, `r:a\x1b.go-4-four`, "--", `r:a\x1b.go:9:fish`, `r:fish.md`,
		}},
		{[]string{"-B1"}, []string{
			`r:a\x1b.go-1-one`, "r:a\\x1b.go:2:fish é fish\r", `r:a\x1b.go:3:fish`, "--", `r:a\x1b.go-8-six`, `r:a\x1b.go:9:fish`, `r:fish.md`,
		}},
		{[]string{"-C1", "-A0"}, []string{
			`r:a\x1b.go-1-one`, "r:a\\x1b.go:2:fish é fish\r", `r:a\x1b.go:3:fish`, "--", `r:a\x1b.go-8-six`, `r:a\x1b.go:9:fish`, `r:fish.md`,
		}},
		{[]string{"-B0", "-oC1"}, []string{
			`r:a\x1b.go:2:fish`, `r:a\x1b.go:2:fish`, `r:a\x1b.go:3:fish`, `r:a\x1b.go-4-four`, "--", `r:a\x1b.go:9:fish`, `r:fish.md`,
		}},
		{[]string{"-l"}, []string{`r:a\x1b.go`, "r:fish.md"}},
		{[]string{"-c"}, []string{`r:a\x1b.go:4`, "r:fish.md:1"}},
		{[]string{"-q"}, nil},
	} {
		exit, out, errs := trawl(t, &scripted{answer: lake()}, append([]string{"search", "fish"}, tt.args...)...)
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if out == "" {
			lines = nil
		}
		if exit != 0 || errs != "" || !slices.Equal(lines, tt.want) {
			t.Errorf("%v: exit %d, printed %q, want %q\n%s", tt.args, exit, lines, tt.want, errs)
		}
	}
	_, out, _ := trawl(t, &scripted{answer: lake()}, "search", "fish", "-l0")
	if out != "r:a\x1b.go\x00r:fish.md\x00" {
		t.Errorf("with -0: %q", out)
	}
	if _, out, _ = trawl(t, &scripted{answer: lake()}, "search", "fish", "-c0"); out != "r:a\x1b.go\x004\nr:fish.md\x001\n" {
		t.Errorf("with -c0: %q", out)
	}
}

// TestScoresOfLinesAndPaths: output for programs has the scores beside the warnings, since its lines have one form.
func TestScoresOfLinesAndPaths(t *testing.T) {
	explained := oneFile()
	explained.Files[0].Score, explained.Files[0].Explanation = 1.5, "a \x1b reason"
	for _, flags := range [][]string{nil, {"-l"}, {"-c"}, {"-o"}} {
		exit, out, errs := trawl(t, &scripted{answer: explained}, append([]string{"search", "needle", "--explain"}, flags...)...)
		if exit != 0 || strings.Count(out, "\n") != 1 || errs != "example.org/r:a.go: score 1.5: a \\x1b reason\n" {
			t.Errorf("%v: exit %d, printed %q and %q", flags, exit, out, errs)
		}
	}
}

// paged is a router that has one file a page.
type paged struct{ scripted }

func (s *paged) Search(_ context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	page := len(req.GetPageToken())
	answer := &searchv1.SearchResponse{
		Files:      []*searchv1.FileMatch{{Repo: "r", Path: []byte{'a' + byte(page)}, MatchCount: 1}},
		Statistics: &searchv1.Statistics{FilesMatched: 3, Matches: 3, CountsExact: true}, Coverage: &searchv1.Coverage{Complete: true},
	}
	if page < 2 {
		answer.NextPageToken = make([]byte, page+1)
	}
	return answer, nil
}

// TestAllPagesArePrinted: programs get every file; people, and callers that set a limit, get no
// more than the limit.
func TestAllPagesArePrinted(t *testing.T) {
	for _, tt := range []struct {
		args       []string
		out, notes string
	}{
		{nil, "r:a\nr:b\nr:c\n", ""},
		{[]string{"--max-files", "2"}, "r:a\nr:b\n", "3 files match; more are shown with a larger --max-files\n"},
		{[]string{"--max-files", "3"}, "r:a\nr:b\nr:c\n", ""},
	} {
		exit, out, notes := serveAndRun(t, func(srv *grpc.Server) { searchv1.RegisterSearchServiceServer(srv, &paged{}) }, append([]string{"search", "-l", "x"}, tt.args...)...)
		if exit != 0 || out != tt.out || notes != tt.notes {
			t.Errorf("%v: exit %d, printed %q and %q", tt.args, exit, out, notes)
		}
	}
}

// TestMoreIsAdvisedByItsReason: where files are left out, the advice fits what left them out.
func TestMoreIsAdvisedByItsReason(t *testing.T) {
	for _, tt := range []struct {
		args     []string
		complete bool
		want     string
	}{
		{[]string{"-c"}, false, "at least 3 files match; more are shown with a longer timeout\n"},
		{[]string{"-c", "--max-files", "20"}, false, "at least 3 files match; more are shown with a longer timeout\n"},
		{[]string{"-c", "--max-files", "1"}, false, "at least 3 files match; more are shown with a larger --max-files\n"},
		{[]string{"-c"}, true, "at least 3 files match; more are shown with a larger count: in the query\n"},
	} {
		answer := oneFile()
		answer.Statistics, answer.Coverage = &searchv1.Statistics{FilesMatched: 3}, &searchv1.Coverage{Complete: tt.complete}
		exit, _, notes := trawl(t, &scripted{answer: answer}, append([]string{"search", "x"}, tt.args...)...)
		if exit != 0 || notes != tt.want {
			t.Errorf("%q, complete: %t: exit %d, printed %q, want %q", tt.args, tt.complete, exit, notes, tt.want)
		}
	}
}

// TestNoTime: a search needs time.
func TestNoTime(t *testing.T) {
	for _, timeout := range []string{"0", "-1s"} {
		exit, _, errs := trawl(t, &scripted{answer: oneFile()}, "search", "--timeout", timeout, "x")
		if exit != 2 || !strings.Contains(errs, "want more than 0s") {
			t.Errorf("--timeout %s: exit %d, printed %q", timeout, exit, errs)
		}
	}
}

// TestQuiet: -q prints nothing, whatever else is asked for or found.
func TestQuiet(t *testing.T) {
	for _, args := range [][]string{nil, {"--explain"}, {"--json"}, {"-l"}, {"-c"}, {"--max-files", "1"}, {"--heading"}} {
		exit, out, errs := serveAndRun(t, func(srv *grpc.Server) { searchv1.RegisterSearchServiceServer(srv, &paged{}) }, append([]string{"search", "-q", "x"}, args...)...)
		if exit != 0 || out+errs != "" {
			t.Errorf("-q %q: exit %d, printed %q and %q", args, exit, out, errs)
		}
	}
}

// TestMisreadOperators: a search that finds an operator of other search engines as a text says so, unless it prints nothing.
func TestMisreadOperators(t *testing.T) {
	for args, want := range map[string]string{
		"fish OR catch":             "hint: \"OR\" is a text: the operator is \"or\", in lower case; try fish or catch\n",
		"fish OR catch -l -t go":    "hint: \"OR\" is a text: the operator is \"or\", in lower case; try ( fish or catch ) lang:\"go\"\n",
		"fish or catch":             "",
		"-F fish OR catch":          "",
		"-q fish OR catch":          "",
		"--any -l fish NOT nothing": "hint: \"NOT\" is a text: a dash before a term negates it, as in -file:test\n",
	} {
		exit, _, errs := trawl(t, &scripted{answer: oneFile()}, append([]string{"search"}, strings.Fields(args)...)...)
		if exit != 0 || errs != want {
			t.Errorf("%s: exit %d, printed %q, want %q", args, exit, errs, want)
		}
	}
}

// oddNames has files whose names do not print, or look like escaped ones.
type oddNames struct{ scripted }

const oddRepo = "host:80/r\\q\u00a0"

var odd = []string{"new\nline", "bad\xff", "rlo\u202etxt.exe", `C:\new\table`, `\101`, `a\`, "a\\\n", "a:b\t1:2", "plain name"}

func (*oddNames) Search(context.Context, *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	answer := &searchv1.SearchResponse{Statistics: &searchv1.Statistics{FilesMatched: uint64(len(odd))}, Coverage: &searchv1.Coverage{Complete: true}}
	for _, path := range odd {
		answer.Files = append(answer.Files, &searchv1.FileMatch{Repo: oddRepo, Path: []byte(path), MatchCount: 1})
	}
	return answer, nil
}

func (*oddNames) GetFile(_ context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	if i := slices.Index(odd, string(req.GetPath())); req.GetRepo() == oddRepo && i >= 0 {
		return &searchv1.GetFileResponse{Content: []byte(odd[i]), SizeBytes: uint64(len(odd[i]))}, nil
	}
	return nil, status.Error(codes.NotFound, "there is no such file")
}

func (*oddNames) ListTree(_ context.Context, req *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error) {
	if req.GetRepo() == oddRepo {
		return &searchv1.ListTreeResponse{}, nil
	}
	return nil, noRepo(req.GetRepo())
}

// TestPrintedNamesAreTaken: what trawl search prints names the same file to trawl cat and trawl open, with -0 and without, and before
// a line.
func TestPrintedNamesAreTaken(t *testing.T) {
	run := func(args ...string) string {
		t.Helper()
		exit, out, errs := serveAndRun(t, func(srv *grpc.Server) { searchv1.RegisterSearchServiceServer(srv, &oddNames{}) }, args...)
		if exit != 0 {
			t.Errorf("%q: exit %d, %s", args, exit, errs)
		}
		return out
	}
	for flag, end := range map[string]string{"-l": "\n", "-l0": "\x00"} {
		names := strings.Split(strings.TrimSuffix(run("search", flag, "x"), end), end)
		if len(names) != len(odd) {
			t.Fatalf("%s: %d names: %q", flag, len(names), names)
		}
		for i, name := range names {
			if raw := oddRepo + ":" + odd[i]; flag == "-l0" && name != raw {
				t.Errorf("-l0 prints %q for %q", name, raw)
			}
			if got := run("cat", name); got != odd[i] {
				t.Errorf("cat %s: %q, want %q", name, got, odd[i])
			}
			page := "http://pages" + searchapi.PageOf(oddRepo, "", odd[i]) + "\n"
			if got := run("open", "--pages", "http://pages", name); got != page {
				t.Errorf("open %s: %s", name, got)
			}
			line := "http://pages" + searchapi.PageOfLine(oddRepo, "", odd[i], 7) + "\n"
			if got := run("open", "--pages", "http://pages", name+":7:text"); got != line {
				t.Errorf("open %s:7:text: %s", name, got)
			}
		}
	}
	if got, want := run("open", "--pages", "http://pages", oddRepo), "http://pages"+searchapi.PageOf(oddRepo, "", "")+"\n"; got != want {
		t.Errorf("open "+oddRepo+": %s, want %s", got, want)
	}
}

// TestStatusOfSearches: status 1 is only for a complete answer.
func TestStatusOfSearches(t *testing.T) {
	answer := func(files uint64, complete bool) *searchv1.SearchResponse {
		a := oneFile()
		a.Files, a.Statistics.FilesMatched = a.Files[:files], files
		if a.Coverage.Complete = complete; !complete {
			a.Coverage.Uncovered = []*searchv1.UncoveredShard{{Repos: []string{"pond"}, Reason: searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT}}
		}
		return a
	}
	for _, tt := range []struct {
		files    uint64
		complete bool
		want     int
	}{{1, true, 0}, {0, true, 1}, {1, false, 0}, {0, false, 2}} {
		exit, _, errs := trawl(t, &scripted{answer: answer(tt.files, tt.complete)}, "search", "x")
		if exit != tt.want || strings.Contains(errs, "not searched: 1 shard of pond") == tt.complete {
			t.Errorf("%d files, complete: %t: exit %d, want %d\n%s", tt.files, tt.complete, exit, tt.want, errs)
		}
	}
}

// shelf has one file, in a repo and at a path with colons, and gives three bytes of it at a time.
type shelf struct{ scripted }

func (*shelf) GetFile(_ context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	const content = "one\ntwo \x1b\n"
	switch {
	case req.GetRepo() != "host:80/r":
		return nil, searchapi.NotFound("repo", fmt.Sprintf("no repo %q is published", req.GetRepo()), []string{"boat\x1b"})
	case string(req.GetPath()) != "a:b":
		return nil, searchapi.FileNotFound(req, "", []string{"a:b"})
	}
	end := min(req.GetOffset()+3, uint64(len(content)))
	return &searchv1.GetFileResponse{Content: []byte(content[req.GetOffset():end]), Blob: []byte(req.GetBranch()), SizeBytes: uint64(len(content))}, nil
}

func (*shelf) ListTree(_ context.Context, req *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error) {
	if req.GetRepo() == "host/r" {
		return &searchv1.ListTreeResponse{}, nil
	}
	return nil, noRepo(req.GetRepo())
}

func TestCat(t *testing.T) {
	for _, tt := range []struct {
		name, out, errs string
		exit            int
	}{
		{"host:80/r:a:b", "one\ntwo \x1b\n", "", 0},
		{"host:80/r:a:c", "", `trawl: no file "a:c" in host:80/r on any branch; the nearest: "a:b"` + "\n", 1},
		{"host:b", "", `trawl: no repo "host" is published; the nearest: "boat\x1b"` + "\n", 1},
		{"r", "", "want REPO:PATH", 2},
		{":a:", "", "want REPO:PATH", 2},
	} {
		exit, out, errs := serveAndRun(t, func(srv *grpc.Server) { searchv1.RegisterSearchServiceServer(srv, &shelf{}) }, "cat", tt.name)
		if exit != tt.exit || out != tt.out || !strings.Contains(errs, tt.errs) {
			t.Errorf("%s: exit %d, printed %q: %s", tt.name, exit, out, errs)
		}
	}
}

// TestTimeoutSaysSo: a search whose time is over says which flag gives it more.
func TestTimeoutSaysSo(t *testing.T) {
	for _, command := range []string{"search", "def", "refs"} {
		exit, _, errs := trawl(t, &scripted{answer: oneFile()}, command, "--timeout", "1ns", "x")
		if want := "trawl: no answer came within 1ns: --timeout gives it more time\n"; exit != 2 || errs != want {
			t.Errorf("%s: exit %d: %s", command, exit, errs)
		}
	}
}

// branched has a file on each of two branches, one on the second, and one without indexed content.
type branched struct{ shelf }

func (*branched) GetFile(_ context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	files := map[string]string{"main a": "main", "main c": "see", "release/1 rel": "release", "main bin": ""}
	if req.GetRepo() != "pond" {
		return nil, noRepo(req.GetRepo())
	}
	if err := noBranch(req.GetBranch()); err != nil {
		return nil, err
	}
	for _, b := range []string{"main", "release/1"} {
		content, ok := files[b+" "+string(req.GetPath())]
		if !ok || req.GetBranch() != "" && req.GetBranch() != b {
			continue
		}
		resp := &searchv1.GetFileResponse{Content: []byte(content), SizeBytes: uint64(len(content)), Branches: []string{b}}
		if string(req.GetPath()) == "bin" {
			resp.SkipReason, resp.SizeBytes = searchv1.SkipReason_SKIP_REASON_BINARY, 1200
		}
		return resp, nil
	}
	elsewhere := ""
	if string(req.GetPath()) == "rel" {
		elsewhere = "release/1"
	}
	return nil, searchapi.FileNotFound(req, elsewhere, nil)
}

func noRepo(name string) error {
	return searchapi.NotFound("repo", fmt.Sprintf("no repo %q is published", name), []string{"pond"})
}

func noBranch(name string) error {
	if name == "" || name == "main" || name == "release/1" {
		return nil
	}
	return searchapi.NotFound("branch", fmt.Sprintf("no branch %q is indexed", name), []string{"main"})
}

func (*branched) ListTree(_ context.Context, req *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error) {
	if req.GetRepo() != "pond" {
		return nil, noRepo(req.GetRepo())
	}
	if path := string(req.GetPath()); path != "" && path != "src" && path != "src/" {
		return nil, searchapi.FolderNotFound(req, "main", nil)
	}
	return &searchv1.ListTreeResponse{}, noBranch(req.GetBranch())
}

// TestFilesAndBranches: trawl cat goes on after a file that it cannot print, and says what is wrong with each; trawl open opens
// only what there is.
func TestFilesAndBranches(t *testing.T) {
	for _, tt := range []struct {
		args, out string
		errs      []string
		exit      int
	}{
		{"cat pond:a pond:missing pond:c", "mainsee", []string{`no file "missing" in pond`}, 1},
		{"cat pond:missing pond:a", "main", []string{`no file "missing" in pond`}, 1},
		{"cat pond:missing nothing pond:a pond:gone", "main", []string{`"missing" in pond`, "want REPO:PATH", `"gone" in pond`}, 2},
		{"cat pond:bin pond:a", "main", []string{"pond:bin is not printed, since its content is not indexed: binary, 1.2 kB"}, 1},
		{"cat pond:rel", "release", nil, 0},
		{"cat -b release/1 pond:rel", "release", nil, 0},
		{"cat pond@release/1:rel pond@main:a", "releasemain", nil, 0},
		{"cat pond@main:rel", "", []string{`no file "rel" in pond on branch "main", but on branch "release/1"`}, 1},
		{"cat pond@nope:rel", "", []string{`no branch "nope" is indexed`}, 1},
		{"open --pages http://p pond@release/1:rel:1:text", "http://p/r/pond@release/1/-/rel#L1\n", nil, 0},
		{"cat -b main pond:rel pond:a", "main", []string{`no file "rel" in pond on branch "main", but on branch "release/1"`}, 1},
		{"cat -b nope pond:rel", "", []string{`no branch "nope" is indexed; the nearest: "main"`}, 1},
		{"cat -b main pond:missing", "", []string{`no file "missing" in pond`}, 1},
		{"open --pages http://p pond:rel:1:text", "http://p/r/pond/-/rel#L1\n", nil, 0},
		{"open --pages http://p pond", "http://p/r/pond\n", nil, 0},
		{"open --pages http://p pond:src", "http://p/r/pond/-/src/\n", nil, 0},
		{"open --pages http://p pond:src/ -b main", "http://p/r/pond@main/-/src/\n", nil, 0},
		{"open --pages http://p pond:missing", "", []string{`no file "missing" in pond`}, 1},
		{"open --pages http://p pnod", "", []string{`no repo "pnod" is published; the nearest: "pond"`}, 1},
		{"open --pages http://p nosuch", "", []string{`no repo "nosuch"`}, 1},
		{"open --pages http://p pond:rel -b main", "", []string{`no file "rel" in pond on branch "main", but on branch "release/1"`}, 1},
		{"open --pages http://p pond -b nope", "", []string{`no branch "nope"`}, 1},
		{"open --pages http://p pond:rel -b nope", "", []string{`no branch "nope"`}, 1},
		{"open --pages http://p ", "", []string{"want REPO"}, 2},
	} {
		exit, out, errs := serveAndRun(t, func(srv *grpc.Server) { searchv1.RegisterSearchServiceServer(srv, &branched{}) }, strings.Split(tt.args, " ")...)
		if exit != tt.exit || out != tt.out || strings.Count(errs, "trawl: ") != len(tt.errs) {
			t.Errorf("%s: exit %d, printed %q: %s", tt.args, exit, out, errs)
		}
		for _, want := range tt.errs {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: says %q, not %q", tt.args, errs, want)
			}
		}
	}
}
