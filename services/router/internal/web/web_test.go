package web

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	indexquery "github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestReposThatAQueryLeaves: a page does not claim repos that the query rules out. Where something is found, how many it leaves is unknown.
func TestReposThatAQueryLeaves(t *testing.T) {
	f := &fake{search: found(hit("host/pond", "a/fish.go", chunk("fish\n", "fish", 1))), files: map[string]map[string]string{"host/pond": nil, "host/lake": nil}}
	for query, over := range map[string]string{
		"fish f:go lang:go": "Complete over 2 repos", "r:pond fish": "Complete.", "(-r:lake fish)": "Complete.", "b:main fish": "Complete.", "archived:no fish": "Complete.",
	} {
		contains(t, textOf(show(t, f.serve(t, false), "/?"+url.Values{"q": {query}}.Encode())), over)
	}
}

// TestSearchPage: an answer is shown with its lines, numbers, marks, counts and account, and
// links that lead on.
func TestSearchPage(t *testing.T) {
	file := hit("host/pond", "a/fish.go", chunk("// a fish\nvar fish = \"fish\"\n", "fish", 7))
	file.MatchCount = 10
	other := hit("host/lake", "b.txt", &searchv1.ChunkMatch{Content: []byte("b.txt"), FileName: true, Ranges: []*searchv1.Range{
		{Start: &searchv1.Location{}, End: &searchv1.Location{ByteOffset: 1}},
	}})
	other.Language = "Text"
	f := &fake{search: found(file, other), files: map[string]map[string]string{"host/pond": nil, "host/lake": nil}}
	f.search.Statistics.Duration = durationpb.New(1500 * time.Microsecond)
	f.search.Statistics.Matches = 12345
	f.search.NextPageToken = []byte("next!")
	f.search.Facets = []*searchv1.FacetCounts{
		{Facet: searchv1.Facet_FACET_REPO, Values: []*searchv1.FacetValue{{Repo: "host/pond", Files: 1234}, {Repo: "host/lake", Files: 1}}, ValuesLeftOut: 7},
		{Facet: searchv1.Facet_FACET_LANGUAGE, Values: []*searchv1.FacetValue{{Name: "Text", Files: 2}, {Name: "Go", Files: 1}, {Files: 1}}},
	}
	page := show(t, f.serve(t, false), "/?q=fish+or+b")
	contains(
		t, page, "<title>fish or b · Trawl</title>", `value="fish or b"`, "<strong>12,345 matches</strong> in 2 files, 1 ms.", "Complete over 2 repos, with all that was published before the search began at <time ",
		`href="/r/host/pond@main/-/a/fish.go?q=fish+or+b#L8"`, `<mark><span class="s">fish</span></mark>`, "7 more matches", "<mark>b</mark>.txt", "main</bdi>@0123456789ab",
		url.Values{"q": {`r:^host/pond$ (fish or b )`}}.Encode(), url.Values{"q": {`lang:Text (fish or b )`}}.Encode(), `href="/?page=bmV4dCE&q=fish+or+b"`,
	)
	contains(t, textOf(page), "1,234", "7 more")
	contains(t, page, url.Values{"q": {`-(lang:Text ) (fish or b )`}}.Encode(), url.Values{"q": {`-(r:^host/lake$ ) (fish or b )`}}.Encode(), `title="Match whole words"`)
	if got := f.asked[0].Options.Facets; len(got) != 3 {
		t.Errorf("asked for the facets %v", got)
	}
	show(t, f.serve(t, false), "/?page=bmV4dCE&q=fish")
	if got := f.asked[1]; string(got.PageToken) != "next!" || got.Options.Mode != searchv1.Mode_MODE_UNSPECIFIED {
		t.Errorf("asked for %v", got)
	}
	part := show(t, f.serve(t, false), "/?q=fish&part=1&live=1")
	if strings.Contains(part, "<html") || !strings.Contains(part, "a/fish.go") || f.asked[2].Options.Mode != searchv1.Mode_MODE_TOP_K {
		t.Errorf("a part of the page, while somebody types: %s", part)
	}
}

// TestAdviceToTryAgain: a page says so only where another attempt may succeed.
func TestAdviceToTryAgain(t *testing.T) {
	for again, err := range map[bool]error{true: searchapi.Overloaded("too much", time.Second), false: status.Error(codes.ResourceExhausted, "too large")} {
		w := visit(t, (&fake{err: err}).serve(t, false), "/?q=x")
		if w.Code != http.StatusTooManyRequests || strings.Contains(w.Body.String(), "Try again") != again {
			t.Errorf("%v: %d %s", err, w.Code, textOf(w.Body.String()))
		}
	}
}

// TestNoLinesWithoutTheirMatch: where a page has no room for more lines of a file, it does not end
// with the lines before a match that it does not show.
func TestNoLinesWithoutTheirMatch(t *testing.T) {
	for before := range 4 {
		file := hit("host/pond", "a/fish.go", chunk(strings.Repeat("a fish\n", fileLines-before), "fish", 1))
		next := chunk("shore\nbeach\nthe fish\n", "fish", 100)
		file.Chunks = append(file.Chunks, next)
		text := textOf(show(t, (&fake{search: found(file)}).serve(t, false), "/?q=fish"))
		if got, want := strings.Contains(text, "shore"), before == 3; got != want {
			t.Errorf("room for %d lines: the lines before a match are there: %v", before, got)
		}
	}
}

// TestIncompleteAnswer: the page says what was not searched, and that counts are lower bounds.
func TestIncompleteAnswer(t *testing.T) {
	f := &fake{search: found()}
	f.search.Statistics.CountsExact = false
	f.search.Coverage = &searchv1.Coverage{Requested: 9, Searched: 6, Failed: 1, NotReached: 2, InPart: 2, Uncovered: []*searchv1.UncoveredShard{
		{Repos: []string{"host/b", "host/a"}, Reason: searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE, InPart: true},
		{Repos: []string{"host/a"}, Reason: searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE, InPart: true},
		{Repos: []string{"1", "2", "3", "4", "5", "6", "7"}, Reason: searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT},
	}}
	text := textOf(show(t, f.serve(t, false), "/?q=fish"))
	contains(t, text, "At least 0 matches", "Incomplete: 1 of 9 shards was not searched and 2 were searched in part. Counts", "2 shards searched in part: the time was over. Repos: host/a, host/b",
		"1 shard not searched: damaged, being fetched again. Repos: 1, 2, 3, 4, 5 and 2 more", "Nothing was found in the part that was searched")
	if strings.Contains(text, "Complete over") {
		t.Error("the page says that the answer is complete")
	}
}

// TestSelectedReposAndFolders: what a query selects is listed with the number of its files, and leads to these.
func TestSelectedReposAndFolders(t *testing.T) {
	f := &fake{search: found()}
	f.search.Statistics.FilesMatched = 5
	f.search.Selected = searchv1.Facet_FACET_DIRECTORY
	f.search.Facets = []*searchv1.FacetCounts{{Facet: searchv1.Facet_FACET_DIRECTORY, Values: []*searchv1.FacetValue{
		{Repo: "host/pond", Directory: []byte("a+b/c/"), Files: 3}, {Repo: "host/pond", Files: 2}, {Repo: hostile[0], Directory: []byte(hostile[1] + "/"), Files: 1},
	}}}
	page := show(t, f.serve(t, false), "/?q=fish+select:dir+or+b")
	contains(t, page, "host/pond/a+b/c/", url.Values{"q": {`r:^host/pond$ f:"^a\\+b/c/[^/]*$" (fish  or b )`}}.Encode())
	harmless(t, "selected folders", page)
}

// TestNothingFound: an empty answer says what was searched, and what may be wrong.
func TestNothingFound(t *testing.T) {
	f := &fake{search: found()}
	f.search.Empty = &searchv1.Empty{
		Repos: 1234, Searched: []*searchv1.SearchedRepo{{Name: "host/pond", Branches: []*searchv1.BranchEntry{{Name: "main", Commit: testCommit}}}, {Name: hostile[0]}},
		Hints: []*searchv1.Hint{{Text: "no language is called klingon" + hostile[0], Query: "lang:Kotlin x" + hostile[1]}},
	}
	page := show(t, f.serve(t, false), "/?q=fish")
	contains(t, textOf(page), "Complete over 1,234 repos", "Nothing matches.", "Searched: 1,234 repos, host/pond main@0123456789ab", "and 1,232 more", "no language is called klingon", "Try lang:Kotlin x")
	harmless(t, "an empty answer", page)
}

// TestMisreadOperators: a page of results says that an operator of other search engines is a text, and links to what was probably meant.
func TestMisreadOperators(t *testing.T) {
	f := &fake{search: found(hit("host/pond", "a/fish.go", chunk("fish OR catch\n", "fish", 1)))}
	contains(t, textOf(show(t, f.serve(t, false), "/?q=fish+OR+catch")), `"OR" is a text: the operator is "or", in lower case. Try fish or catch`)
}

// TestBranchesThatAreNotNamed: a page that names the first branches of a repo says how many others there are.
func TestBranchesThatAreNotNamed(t *testing.T) {
	var branches []*searchv1.BranchEntry
	for i := range 12 {
		branches = append(branches, &searchv1.BranchEntry{Name: fmt.Sprint("b", i), Commit: testCommit})
	}
	for n, want := range map[int]string{3: "b2@0123456789ab.", 4: "b2@0123456789ab and 1 more branch.", 5: "b2@0123456789ab and 2 more branches."} {
		f := &fake{search: found()}
		f.search.Empty = &searchv1.Empty{Repos: 1, Searched: []*searchv1.SearchedRepo{{Name: "host/pond", Branches: branches[:n]}}}
		contains(t, textOf(show(t, f.serve(t, false), "/?q=fish")), "host/pond b0@0123456789ab b1@0123456789ab "+want)
	}
	for n, want := range map[int]string{10: "b9 at 0123456789ab.", 11: "b9 at 0123456789ab, and 1 more."} {
		l := located{place: place{repo: "host/pond", rev: "gone"}, entry: &searchv1.RepoEntry{Branches: branches[:n]}}
		if got := l.noRevision().Text; !strings.HasSuffix(got, want) {
			t.Errorf("%d branches: %s, want %s", n, got, want)
		}
	}
}

// TestNothingSearched: the page of a query whose filters no repo passes says neither that the index was searched nor that the answer is complete.
func TestNothingSearched(t *testing.T) {
	for repos, want := range map[uint64]string{0: "Nothing was searched: no repo passes the filters of the query.", 1: "The whole index was searched, so there is no match."} {
		f := &fake{search: found()}
		f.search.Files, f.search.Statistics.FilesMatched, f.search.Empty = nil, 0, &searchv1.Empty{Repos: repos}
		text := textOf(show(t, f.serve(t, false), "/?q=fish"))
		contains(t, text, want)
		if strings.Contains(text, "The whole index") == (repos == 0) || strings.Contains(text, "Complete") == (repos == 0) {
			t.Errorf("over %d repos: %s", repos, text)
		}
	}
}

// TestWrongQuery: a query that cannot be read is shown with the place.
func TestWrongQuery(t *testing.T) {
	w := visit(t, (&fake{}).serve(t, false), "/?q=fish+("+url.QueryEscape("<b>"))
	if w.Code != http.StatusBadRequest {
		t.Errorf("status %d", w.Code)
	}
	harmless(t, "a wrong query", w.Body.String())
	contains(t, textOf(w.Body.String()), "The query cannot be read.", "fish ⟨here⟩(", "expected")
	if w := visit(t, (&fake{}).serve(t, false), "/?q=x&page=%21"); w.Code != http.StatusBadRequest {
		t.Errorf("a wrong page: status %d", w.Code)
	}
}

// hostile are names and contents that strangers could choose.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, "javascript:alert(1)", "a\u202egnp.exe", "nul\x00\x1b[31m\r", "\xff\xfe\x80",
	"//evil.example/x", "../../etc/passwd", "{{.}}", "</pre></body>", "a&amp;b<!--", "zero\u200bwidth\ufeff", "-", "@", "%2f%00", "?q=x#L1", strings.Repeat("long/", 1000),
}

// TestHostileNamesAndContents: nothing that strangers chose becomes more than text, on any page.
func TestHostileNamesAndContents(t *testing.T) {
	f := &fake{files: map[string]map[string]string{}}
	var files []*searchv1.FileMatch
	for _, text := range hostile {
		file := hit(text, text, chunk(text+"\n"+text, text, 1))
		file.Branches, file.Commit, file.Language = []string{text}, text, text
		files = append(files, file)
		f.files[text] = map[string]string{text: text, "dir/" + text: text + "\n"}
		f.stale = append(f.stale, &ingestv1.RepoStatus{Name: text, Reason: text, State: ingestv1.State_STATE_FAILED})
	}
	f.search = found(files...)
	f.search.Coverage = &searchv1.Coverage{Uncovered: []*searchv1.UncoveredShard{{Repos: hostile, Message: hostile[0]}}}
	h := f.serve(t, false)
	for _, text := range hostile {
		for _, target := range []string{"/?" + url.Values{"q": {`"` + text}}.Encode(), "/?" + url.Values{"q": {"fish"}, "page": {text}}.Encode(), "/repos?" + url.Values{"q": {text}}.Encode()} {
			harmless(t, target, visit(t, h, target).Body.String())
		}
	}
	show(t, h, "/?q=fish")
	show(t, h, "/repos")
	f.search = nil
	opened := 0
	for _, text := range hostile {
		for _, at := range []place{{text, "", text}, {text, "main", "dir/" + text}, {text, text, ""}, {text, "", ""}, {text, "", "dir/"}, {text, "", text + "/"}} {
			w := visit(t, h, at.address())
			harmless(t, at.address(), w.Body.String())
			if w.Code == http.StatusOK {
				opened++
			}
		}
		harmless(t, text, visit(t, h, place{text, "", ""}.address()+"/-/?"+url.Values{findParam: {text}}.Encode()).Body.String())
	}
	if opened < 3*(len(hostile)-2) { // two are no names that Git has
		t.Errorf("only %d pages of hostile names could be opened", opened)
	}
}

// TestPagesAreSmall: whatever is found, the page of results is below 100 kB, with its style and
// script.
func TestPagesAreSmall(t *testing.T) {
	size := func(resp *searchv1.SearchResponse) int {
		t.Helper()
		return len(show(t, (&fake{search: resp}).serve(t, false), "/?q=fish"))
	}
	most := 100_000 - len(assets()["style.css"].content) - len(assets()["page.js"].content)
	many := make([]*searchv1.FileMatch, pageFiles)
	for i := range many {
		many[i] = hit("host/"+strings.Repeat("r", 90), strings.Repeat("path/", 20)+"file.go", chunk(strings.Repeat("func fish(fish int) fish { return \"fish\" } // fish\n", 2000), "fish", 1))
	}
	if n := size(found(many...)); n > most || n < most/3 {
		t.Errorf("10,000 matches in each of 20 files: %d bytes, at most %d wanted", n, most)
	}
	for _, line := range []string{strings.Repeat("fish ", 2<<20/5), strings.Repeat("\x00", 2<<20) + "fish", strings.Repeat("<", 2<<20)} {
		long := chunk(line, "fish", 1)
		long.Ranges = long.Ranges[:min(len(long.Ranges), fileMatches)]
		for i := range many {
			many[i] = hit(strings.Repeat("\x01", 1000), strings.Repeat("\xff/", 2000), long)
		}
		if n := size(found(many...)); n > most {
			t.Errorf("a line of 2 MiB: %d bytes, at most %d wanted", n, most)
		}
	}
}

// TestAddresses: any name has an address, which names it alone, also after its way through the
// router of requests.
func TestAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segment := rapid.OneOf(rapid.SampledFrom([]string{"-", "@", "..", ".", "a b", "%", "\xff", "?", "#", "ü", "\n"}), rapid.StringN(1, 10, 20))
		name := func(label string) string {
			return strings.Trim(strings.Join(rapid.SliceOfN(segment, 1, 4).Draw(t, label), "/"), "/")
		}
		want := place{name("repo"), name("rev"), name("path")}
		if want.repo == "" || strings.Contains(want.repo+"/"+want.rev+"/"+want.path, "//") {
			t.Skip("no name that Git has")
		}
		var got place
		mux := http.NewServeMux()
		mux.HandleFunc("GET /r/{rest...}", func(_ http.ResponseWriter, r *http.Request) { got, _ = parsePlace(r.URL.EscapedPath()) })
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, want.line(3000), nil))
		if got != want {
			t.Fatalf("%q is read as %q", want, got)
		}
	})
	for _, wrong := range []string{"/r/", "/r/@main", "/r/%zz", "/x/a", "/r/" + strings.Repeat("a", 2000)} {
		if p, err := parsePlace(wrong); err == nil {
			t.Errorf("%q is read as %q", wrong, p)
		}
	}
}

// TestNowhere: an address that nothing has gets a page that leads on.
func TestNowhere(t *testing.T) {
	pages := New(Config{WallTime: time.Minute})
	t.Cleanup(pages.Close)
	h := pages.Nowhere()
	for target, want := range map[string]string{"/nosuch": "There is no page /nosuch. For programs", "/repos/x%1b": "There is no page /repos/x"} {
		w := visit(t, h, target)
		harmless(t, target, w.Body.String())
		if text := textOf(w.Body.String()); w.Code != http.StatusNotFound || !strings.Contains(text, want) || !strings.Contains(w.Body.String(), `href="/repos"`) {
			t.Errorf("%s: status %d: %s", target, w.Code, text)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/nosuch", nil))
	if w.Code != http.StatusMethodNotAllowed || !strings.Contains(w.Body.String(), "Pages take GET only") {
		t.Errorf("POST: status %d: %s", w.Code, w.Body)
	}
}

// TestCodeIsText: whatever a text holds, its HTML shows just that.
func TestCodeIsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.OneOf(rapid.SampledFrom([]byte("<>&\"'a/= ")), rapid.Byte())).Draw(t, "text")
		spans := func(label string) (list []span) {
			at := 0
			for range rapid.IntRange(0, 4).Draw(t, label) {
				start := rapid.IntRange(at, len(text)).Draw(t, "start")
				at = rapid.IntRange(start, len(text)).Draw(t, "end")
				list = append(list, span{start, at, "s"})
			}
			return list
		}
		got := string(code(text, spans("colours"), spans("marks")))
		for _, tag := range []string{"<mark>", "</mark>", `<span class="s">`, "</span>", `<i class="x">`, "</i>"} {
			got = strings.ReplaceAll(got, tag, "")
		}
		if strings.ContainsAny(got, "<>\"'") {
			t.Fatalf("%q becomes %q", text, got)
		}
		if printable := bytes.ToValidUTF8(text, nil); len(printable) == len(text) && !strings.ContainsFunc(string(text), unseen) && textOf(got) != string(text) {
			t.Fatalf("%q is shown as %q", text, textOf(got))
		}
	})
	for text, want := range map[string]string{"äb": "<mark>ä</mark>b", "a\xa0b": `<mark>a</mark><i class="x">\xa0</i>b`} {
		if got := string(code([]byte(text), nil, []span{{0, 1, ""}})); got != want {
			t.Errorf("a mark on the first byte of %q: %s", text, got)
		}
	}
	if got := name("a\u202eb\xff\x00"); got != `a<i class="x">U+202E</i>b<i class="x">\xff</i><i class="x">U+0000</i>` {
		t.Error(got)
	}
}

// TestLinesAreCut: a long line is shown around its first mark, and what is left out is counted.
func TestLinesAreCut(t *testing.T) {
	line := []byte(strings.Repeat("ä", 500) + "fish" + strings.Repeat("x", 500))
	got := string(shownLine(line, nil, []span{{1000, 1004, ""}}, 100))
	if !strings.Contains(got, "<mark>fish</mark>") || !strings.HasPrefix(got, `<i class="x">… 974 bytes …</i>ää`) || len(got) > 300 {
		t.Error(got)
	}
}

// TestNarrow: a search that is narrowed keeps its meaning.
func TestNarrow(t *testing.T) {
	for query, want := range map[string]string{
		"fish":             "fish lang:Go",
		"a or b":           "lang:Go (a or b )",
		"(a or b) c":       "lang:Go ((a or b) c )",
		"case:yes a":       "case:yes a lang:Go",
		"order":            "order lang:Go",
		"\"a or b\"":       "lang:Go (\"a or b\" )",
		"(":                "",
		"x\ny":             "",
		" f:\\.go$ -test ": "f:\\.go$ -test lang:Go",
	} {
		if got := narrow(query, "lang:Go"); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	for _, value := range hostile[:6] {
		term := "r:" + quote("^"+indexquery.Literal(value)+"$")
		if _, err := searchapi.Parse(term, syntaxVersion); err != nil {
			t.Errorf("%q: %v", term, err)
		}
	}
}

// TestNoRepos: a list that is empty because it is incomplete does not say that nothing is indexed.
func TestNoRepos(t *testing.T) {
	contains(t, textOf(show(t, (&fake{unlisted: true}).serve(t, false), "/repos")), "No repo could be listed.")
	contains(t, textOf(show(t, (&fake{}).serve(t, false), "/repos")), "No repo is indexed yet.")
	contains(t, textOf(show(t, (&fake{}).serve(t, false), "/repos?q=x")), "No indexed repo has this in its name.")
}

// TestBehind: repos that are not up to date are listed with their state.
func TestBehind(t *testing.T) {
	f := &fake{files: map[string]map[string]string{"host/pond": {"a": ""}}, stale: []*ingestv1.RepoStatus{{
		Name: "host/away", State: ingestv1.State_STATE_FAILED, Reason: "the repository does not exist",
		Freshness: &ingestv1.Freshness{BehindSince: timestamppb.New(time.Now().Add(-3 * time.Hour))},
	}, {
		Name: "host/new", State: ingestv1.State_STATE_QUEUED, Freshness: &ingestv1.Freshness{BehindSince: timestamppb.New(time.Now().Add(time.Hour))}, // by a clock that is ahead
	}}}
	contains(t, textOf(show(t, f.serve(t, false), "/repos")), "host/away failed, behind for 3 hours: the repository does not exist", "host/new queued, behind for less than a minute", "host/pond", "main@0123456789ab and 1 more")
}
