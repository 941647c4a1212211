package serving_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// placesOf gets all pages of definitions or references. It returns repo, path, places, and the
// symbols that contain them.
func (c *cluster) placesOf(references bool, name, query string, perPage uint32) (places []string) {
	c.t.Helper()
	for token, pages := []byte(nil), 0; pages == 0 || token != nil; pages++ {
		options := &searchv1.SearchOptions{MaxFiles: perPage, MaxMatchesPerFile: 100_000, RequireComplete: true}
		var repos []*searchv1.RepoMatches
		if references {
			resp, err := c.search.References(c.t.Context(), &searchv1.ReferencesRequest{Name: name, Query: query, Options: options, PageToken: token})
			c.must(err)
			repos, token = resp.Repos, resp.NextPageToken
		} else {
			resp, err := c.search.Definitions(c.t.Context(), &searchv1.DefinitionsRequest{Name: name, Query: query, Options: options, PageToken: token})
			c.must(err)
			repos, token = resp.Repos, resp.NextPageToken
		}
		for _, group := range repos {
			for _, f := range group.Files {
				for _, chunk := range f.Chunks {
					for _, r := range chunk.Ranges {
						if r.Definition == references {
							c.t.Errorf("%s: definition is %v in %s at %v", name, r.Definition, f.Path, r)
						}
						places = append(places, fmt.Sprintf("%s %s:%d%s", group.Repo, f.Path, r.Start.ByteOffset, symbolText(f, r)))
					}
				}
			}
		}
	}
	slices.Sort(places)
	return places
}

func symbolText(f *searchv1.FileMatch, r *searchv1.Range) string {
	if r.Symbol == 0 {
		return ""
	}
	s := f.Symbols[r.Symbol-1]
	return fmt.Sprintf(" %s %s.%s", strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SYMBOL_KIND_")), s.Scope, s.Name)
}

// TestDefinitionsAndReferences asks for places of names through a router with two searchers.
func TestDefinitionsAndReferences(t *testing.T) { inOneAndInSeveral(t, testDefinitionsAndReferences) }

func testDefinitionsAndReferences(t *testing.T, oneProcess bool) {
	c := startIn(t, oneProcess, 2, 1)
	c.publish("host/one", map[string]string{
		"pond.go": "package pond\n\n// Feed feeds.\nfunc (p *Pond) Feed() { feed(p) }\n\ntype Pond struct{ Feeder int }\n",
		"a.txt":   "Feed is not defined here\n",
	}, map[string]string{"use.go": "package pond\n\nfunc main() { new(Pond).Feed() }\n\nvar f = Pond.Feed\n"})
	c.publish("host/two", map[string]string{"lake.go": "package lake\n\nconst Feed = 1 // Feed\n"})

	check := func(references bool, name, query string, want ...string) {
		t.Helper()
		for _, perPage := range []uint32{1, 50} {
			if got := c.placesOf(references, name, query, perPage); !slices.Equal(got, want) {
				t.Errorf("%s in %q, references %v, %d files a page:\n got %q\nwant %q", name, query, references, perPage, got, want)
			}
		}
	}
	check(false, "Feed", "", "host/one pond.go:44 method Pond.Feed", "host/two lake.go:20 constant .Feed")
	check(false, "Feed", "r:two or f:a.txt", "host/two lake.go:20 constant .Feed")
	check(false, "Feed", "Feeder", "host/one pond.go:44 method Pond.Feed") // its own matches are not shown
	check(false, "feed", "")
	check(true, "Feed", "r:one", "host/one a.txt:0", "host/one pond.go:17", "host/one use.go:38 function .main", "host/one use.go:61")
	check(true, "Feed", "lang:go -r:one", "host/two lake.go:32")
	check(true, "feed", "", "host/one pond.go:53 method Pond.Feed")
	check(true, "nothing", "")

	for _, req := range []*searchv1.DefinitionsRequest{{}, {Name: strings.Repeat("a", 257)}, {Name: "a", Query: "f:[a"}, {Name: "a", PageToken: []byte("x")}} {
		if _, err := c.search.Definitions(c.t.Context(), req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", req, err)
		}
	}
	for _, name := range []string{`a"b\`, "a\nb", "-x", "(", "$f", " "} {
		if got := c.placesOf(true, name, "", 50); len(got) > 0 && name != "(" && name != " " {
			t.Errorf("%q is in %q", name, got)
		}
	}
}

// TestDefinitionsFrom asks for definitions from places where names are used. With room for all, the answer has the same ones as without a place.
func TestDefinitionsFrom(t *testing.T) { inOneAndInSeveral(t, testDefinitionsFrom) }

func testDefinitionsFrom(t *testing.T, oneProcess bool) {
	c := startIn(t, oneProcess, 2, 1)
	c.publish("host/one", map[string]string{
		"cmd/main.go": "package main\n\nimport \"host/two/lake\"\n\nfunc main() { lake.Feed(); p := &Pond{}; p.Feed() }\n",
		"cmd/pond.go": "package main\n\ntype Pond struct{}\nfunc (r *River) Feed() {}\nfunc (p *Pond) Feed() {}\n",
		"empty.go":    "",
		"long.go":     "package long\n\ntype T struct { " + strings.Repeat("a int; ", 500) + "Long int; " + strings.Repeat("b int; ", 500) + "}\n",
	}, map[string]string{"sea.go": "package sea\n\nfunc Feed() {}\n"})
	c.publish("host/two", map[string]string{"lake/lake.go": "package lake\n\nfunc Feed() {}\n", "lake.go": "package two\n\nfunc Feed() {}\n"})

	ask := func(from *searchv1.Place, o *searchv1.SearchOptions) (*searchv1.DefinitionsResponse, []string) {
		t.Helper()
		resp, err := c.search.Definitions(c.t.Context(), &searchv1.DefinitionsRequest{Name: "Feed", From: from, Options: o})
		c.must(err)
		var places []string
		for _, f := range searchapi.FilesOfRepos(resp.Repos) {
			r := f.Chunks[0].Ranges[0]
			places = append(places, fmt.Sprintf("%s %s:%d%s", f.Repo, f.Path, r.Start.ByteOffset, symbolText(f, r)))
		}
		return resp, places
	}
	all := c.placesOf(false, "Feed", "", 50)
	for _, tt := range []struct {
		line, column uint32
		likely       bool
		want         string
	}{
		{5, 0, true, "host/two lake/lake.go:19 function .Feed"},
		{5, 20, true, "host/two lake/lake.go:19 function .Feed"},
		{5, 44, true, "host/one cmd/pond.go:74 method Pond.Feed"},
		{1, 0, false, "host/one cmd/pond.go:49 method River.Feed"},
		{1000, 0, false, "host/one cmd/pond.go:49 method River.Feed"},
	} {
		resp, got := ask(&searchv1.Place{Repo: "host/one", Path: []byte("cmd/main.go"), Line: tt.line, Column: tt.column}, &searchv1.SearchOptions{RequireComplete: true})
		if len(got) == 0 || got[0] != tt.want || resp.Likely != tt.likely {
			t.Errorf("line %d, column %d: likely %v, got %q, want first %s", tt.line, tt.column, resp.Likely, got, tt.want)
		}
		if slices.Sort(got); !slices.Equal(got, all) || !resp.Statistics.CountsExact || resp.Statistics.Matches != uint64(len(all)) {
			t.Errorf("line %d: %v\n got %q\nwant %q", tt.line, resp.Statistics, got, all)
		}
	}
	at := &searchv1.Place{Repo: "host/one", Path: []byte("cmd/main.go"), Line: 5}
	if resp, got := ask(at, &searchv1.SearchOptions{MaxFiles: 1, ContextLines: 1}); len(got) != 1 || string(searchapi.FilesOfRepos(resp.Repos)[0].Chunks[0].Content) != "\nfunc Feed() {}\n" {
		t.Errorf("one with a line around it: %v", resp)
	}
	if resp, got := ask(at, &searchv1.SearchOptions{MaxBytes: 700}); len(got) == 0 || len(got) == len(all) || resp.Cut != searchv1.CutReason_CUT_REASON_MAX_BYTES {
		t.Errorf("in 700 bytes: %q, cut %v", got, resp.Cut)
	}
	long, err := c.search.Definitions(c.t.Context(), &searchv1.DefinitionsRequest{Name: "Long", From: at, Options: &searchv1.SearchOptions{MaxLineBytes: 100}})
	c.must(err)
	if chunk := searchapi.FilesOfRepos(long.Repos)[0].Chunks[0]; chunk.CutBefore == 0 || chunk.CutAfter == 0 || len(chunk.Content) > 100 || chunk.ContentStart.Column != chunk.CutBefore+1 {
		t.Errorf("a part of a long line: %v", chunk)
	}
	if _, got := ask(&searchv1.Place{Repo: "host/one", Path: []byte("empty.go"), Line: 1}, nil); len(got) != len(all) {
		t.Errorf("from an empty file: %q", got)
	}
	for _, tt := range []struct {
		req  *searchv1.DefinitionsRequest
		code codes.Code
	}{
		{&searchv1.DefinitionsRequest{Name: "Feed", From: &searchv1.Place{Repo: "host/none", Path: []byte("a")}}, codes.NotFound},
		{&searchv1.DefinitionsRequest{Name: "Feed", From: &searchv1.Place{Repo: "host/one", Path: []byte("none")}}, codes.NotFound},
		{&searchv1.DefinitionsRequest{Name: "Feed", From: &searchv1.Place{Repo: "host/one"}}, codes.InvalidArgument},
		{&searchv1.DefinitionsRequest{Name: "Feed", From: at, PageToken: []byte("x")}, codes.InvalidArgument},
		{&searchv1.DefinitionsRequest{Name: "Feed", From: at, Query: "a) or (b"}, codes.InvalidArgument},
		{&searchv1.DefinitionsRequest{Name: "Feed", From: at, Query: "select:repo"}, codes.InvalidArgument},
	} {
		if _, err := c.search.Definitions(c.t.Context(), tt.req); status.Code(err) != tt.code {
			t.Errorf("%v: %v, want %v", tt.req, err, tt.code)
		}
	}
}

// TestNamesAsBruteForce compares definitions and references of words of a random corpus with brute
// force, and both together with all places of these words.
func TestNamesAsBruteForce(t *testing.T) {
	c := startCluster(t, 2, 1)
	const seed = 9
	corpus := indextest.Random(seed)
	c.publishCorpus(corpus, rand.New(rand.NewPCG(seed, 1)))
	for _, q := range indextest.OwnQueries(corpus, seed, 120) {
		parsed, err := searchapi.Parse(q.Text, 2)
		c.must(err)
		parsed, err = indextest.Resolve(corpus, parsed)
		c.must(err)
		want, err := indextest.Eval(corpus, parsed)
		c.must(err)
		resp, err := c.search.Search(t.Context(), &searchv1.SearchRequest{Query: q.Text, Options: &searchv1.SearchOptions{
			MaxFiles: 10_000, MaxMatchesPerFile: 100_000, MaxBytes: 32 << 20, RequireComplete: true, SyntaxVersion: 2,
		}})
		c.must(err)
		if a, b := describe(resp.Files), describeOracle(want); !slices.Equal(a, b) {
			t.Errorf("query %q (%s):\n got %q\nwant %q", q.Text, q.Kind, a, b)
		}
	}
}

// TestNamesOfOthers looks for a name in a repo that the caller may not see.
func TestNamesOfOthers(t *testing.T) {
	tel, spans := telemetrytest.New(t)
	c := startWith(t, &cluster{replication: 1, access: guarded(), tel: tel, spans: spans}, 1)
	c.publish("host/one", map[string]string{"a.go": "package a\n\nfunc Feed() { Feed() }\n"})
	c.publish("host/two", map[string]string{"b.go": "package b\n\nfunc Feed() { Feed() }\n"})
	text, _ := c.token(access.Spec{Scopes: []access.Scope{access.ScopeSearch, access.ScopeIngest}, Allow: []string{"host/two"}})
	reader := c.as(text)
	for _, references := range []bool{false, true} {
		if got := reader.placesOf(references, "Feed", "", 50); len(got) != 1 || !strings.HasPrefix(got[0], "host/two ") {
			t.Errorf("a reader of host/two sees %q", got)
		}
	}
	from := func(repo, path string) *searchv1.DefinitionsRequest {
		return &searchv1.DefinitionsRequest{Name: "Feed", From: &searchv1.Place{Repo: repo, Path: []byte(path), Line: 3}}
	}
	if resp, err := reader.search.Definitions(t.Context(), from("host/two", "b.go")); err != nil || len(resp.Repos) != 1 || len(resp.Repos[0].Files) != 1 {
		t.Errorf("from a place of its own: %v, %v", resp, err)
	}
	if _, err := reader.search.Definitions(t.Context(), from("host/one", "a.go")); status.Code(err) != codes.NotFound {
		t.Errorf("from a place of others: %v", err)
	}
	if _, err := c.search.Definitions(t.Context(), &searchv1.DefinitionsRequest{Name: "Feed"}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a token: %v", err)
	}
}

// TestNamesThatAreNotDefined asks for names that differ a little from those that are defined, by a caller who may not see all of these.
func TestNamesThatAreNotDefined(t *testing.T) { inOneAndInSeveral(t, testNamesThatAreNotDefined) }

func testNamesThatAreNotDefined(t *testing.T, oneProcess bool) {
	c := startGuardedIn(t, oneProcess)
	c.publish("host/pond", map[string]string{"pond.go": "package pond\n\nfunc NewReader() {}\n\nfunc NewRiver() {}\n\ntype Heron int\n"})
	c.publish("host/secret", map[string]string{"secret.go": "package secret\n\nfunc NewReaders() {}\n"})
	token, _ := c.token(access.Spec{Scopes: []access.Scope{access.ScopeSearch}, Allow: []string{"host/pond"}})
	as := c.as(token)
	c.eventually("the repo is found", func() bool { return len(paths(as.find("NewReader", nil))) == 1 })
	const nearest = ` is not defined where the query looks; the nearest: "NewReader"`
	const noPath = `no path that you may see matches "nosuch"`
	for _, tt := range []struct{ name, within, definitions, references string }{
		{"NewRaeder", "", `"NewRaeder"` + nearest, `"NewRaeder"` + nearest},
		{"newreader", "lang:go", `"newreader"` + nearest, `"newreader"` + nearest},
		{"NewReaders", "", `"NewReaders"` + nearest, `"NewReaders"` + nearest},
		{"Heron", "f:nosuch", noPath, noPath},
		{"Heron", "-lang:java", "found", `"Heron" is defined, and used nowhere that the query looks`},
		{"qqq", "", "", ""},
		{"+", "", "", ""},
	} {
		definitions, err := as.search.Definitions(t.Context(), &searchv1.DefinitionsRequest{Name: tt.name, Query: tt.within})
		c.must(err)
		references, err := as.search.References(t.Context(), &searchv1.ReferencesRequest{Name: tt.name, Query: tt.within, Options: &searchv1.SearchOptions{Explain: true}})
		c.must(err)
		hints := func(e *searchv1.Empty) (all string) {
			for _, h := range e.GetHints() {
				all += h.Text + h.Query
			}
			return all
		}
		if got := hints(definitions.Empty); tt.definitions != "found" && got != tt.definitions {
			t.Errorf("definitions of %s in %q: %q, want %q", tt.name, tt.within, got, tt.definitions)
		}
		if got := hints(references.Empty); got != tt.references {
			t.Errorf("references of %s in %q: %q, want %q", tt.name, tt.within, got, tt.references)
		}
	}
	for query, want := range map[string]string{"sym:NewRaeder lang:go": `sym:"^NewReader$" lang:go`, `x or ref:\bNewRaeder\b`: `x or ref:"\\bNewReader\\b"`, "sym:NewRaeder.*": "", "-sym:NewReader -x": ""} {
		found, err := as.search.Search(t.Context(), &searchv1.SearchRequest{Query: query, Options: &searchv1.SearchOptions{SyntaxVersion: 2}})
		c.must(err)
		got := ""
		for _, h := range found.Empty.GetHints() {
			got += h.Query
		}
		if got != want {
			t.Errorf("%s: %v, want %s", query, found.Empty, want)
		}
	}
}
