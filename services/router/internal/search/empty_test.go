package search_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// hidden is a repo that the caller of the tests below may not see.
const hidden = "host/pond-secret"

// startEmpty is a service whose searchers find nothing, for a caller who may not see the repo hidden. They find a file in any case, unless it is nowhere.
// And they find it by a tree, as the paths that come nearest are looked for.
func startEmpty(t *testing.T) *cluster {
	t.Helper()
	root := func(name string, shard int, languages []string, branches ...string) *catalogv1.Root {
		digest := d(shard)
		r := &catalogv1.Root{Repo: name, Shards: []*catalogv1.ShardRef{{Digest: digest[:], SizeBytes: 10, Languages: languages, Repos: 1}}}
		for _, b := range branches {
			r.Branches = append(r.Branches, &catalogv1.Branch{Name: b, Commit: "c0-" + b})
		}
		return r
	}
	return start(t, 1, func(c *cluster) {
		layout, err := search.NewLayout(7, []*catalogv1.Root{
			root("host/pond", 1, []string{"Go", "Markdown"}, "main", "release/1"), root("host/lake", 2, []string{"Go", "C++"}, "main"),
			root(hidden, 3, []string{"Secretlang"}, "main", "hidden-branch"),
		})
		if err == nil {
			c.layout = layout.Only(func(repo string) bool { return repo != hidden })
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, repo := range []string{"host/pond", "host/lake", hidden} {
			c.searchers[0].files[d(i+1)] = []*searchv1.FileMatch{file(repo, "src/fish/"+strings.TrimPrefix(repo, "host/")+".go", 0)}
		}
		c.searchers[0].matches = func(query string, _ *searchv1.FileMatch) bool {
			return query == "" || strings.HasSuffix(query, " case:no") && !strings.Contains(query, "nowhere")
		}
	})
}

// TestFactsCountRepos: an empty answer counts the repos whose facts pass, which searchers say, unless one of them does not say so.
func TestFactsCountRepos(t *testing.T) {
	c := startEmpty(t)
	s := c.searchers[0]
	var asked []string
	s.describes = func(req *searchv1.ListRequest, _ searchapi.Digest, repo string) *searchv1.RepoEntry {
		asked = append(asked, prototext.MarshalOptions{}.Format(req.Tree))
		if repo != "host/pond" {
			return nil
		}
		return &searchv1.RepoEntry{Name: repo}
	}
	tree := func(text string) string {
		t.Helper()
		q := &searchv1.Query{}
		if err := prototext.Unmarshal([]byte(text), q); err != nil {
			t.Fatal(err)
		}
		return prototext.MarshalOptions{}.Format(q)
	}
	for query, want := range map[string]string{
		"x archived:yes": `and {queries {all: true} queries {fact {kind: KIND_ARCHIVED value: true}}}`,
		"x -(y fork:no)": `and {queries {all: true} queries {not {and {queries {all: false} queries {fact {kind: KIND_FORK}}}}}}`,
		"x meta.team:infra r:pond|lake (public:yes or b:main)": `and {queries {all: true} queries {meta {key: "team" expression: "infra"}} queries {repo: "pond|lake"} queries {or {queries {fact {kind: KIND_PUBLIC value: true}} queries {branch {name: "main"}}}}}`,
	} {
		asked = nil
		empty := c.ask(t, query, 1).GetEmpty()
		if empty.GetRepos() != 1 || len(empty.GetSearched()) != 1 || empty.Searched[0].Name != "host/pond" || len(asked) == 0 || asked[0] != tree(want) {
			t.Errorf("%s: %v, asked for %v", query, empty, asked)
		}
	}
	if empty := c.ask(t, "x r:host", 1).GetEmpty(); empty.GetRepos() != 2 {
		t.Errorf("without facts: %v", empty)
	}
	s.mu.Lock()
	s.lacks[d(2)] = reasonCorrupt
	s.mu.Unlock()
	if empty := c.ask(t, "x archived:yes", 1).GetEmpty(); empty.GetRepos() != 2 {
		t.Errorf("while a shard does not say: %v", empty)
	}
}

// TestHints: an empty answer says what may be wrong with the query, and how it was probably meant.
func TestHints(t *testing.T) {
	c := startEmpty(t)
	for _, tt := range []struct{ query, says, instead string }{
		{"x r:host/pnd", `no indexed repo that you may see has "host/pnd" in its name; the nearest: "host/pond"`, `x r:"^host/pond$"`},
		{"repo:^host/lkae$ x", `the nearest: "host/lake"`, `repo:"^host/lake$" x`},
		{"r:pond-secre x", `the nearest: "host/pond"`, `r:"^host/pond$" x`},
		{"lang:golnag x", `unknown language "golnag"; the nearest: "Go"`, `lang:"Go" x`},
		{"lang:erlang x", `no file that you may see is in Erlang`, ""},
		{"lang:secretlnag", `unknown language "secretlnag"`, ""},
		{"b:mian x", `no branch that you may see has "mian" in its name; the nearest: "main"`, `b:"main" x`},
		{"b:relase x", `no branch that you may see has "relase" in its name; the nearest: "release/"`, `b:"release/" x`},
		{"b:hidden-branc x", `no branch that you may see has "hidden-branc"`, ""},
		{"language:go x", `there is no field "language:"; "lang:" is one`, `lang:"go" x`},
		{"rpeo:pond x", `there is no field "rpeo:"; "repo:" is one`, `repo:"pond" x`},
		{"Lang:go", `there is no field "Lang:"; "lang:" is one`, `lang:"go"`},
		{"ext:go x", `there is no field "ext:"`, `file:"\\.go$" x`},
		{"needle src/", `"src/" is a text like the others`, `needle file:"^src/"`},
		{"needle ./a-b/c.d/", `file:^a-b/c\.d/ finds files below a folder`, `needle file:"^a-b/c\\.d/"`},
		{"foo(bar)", `the parentheses of "foo(bar)" group`, `"foo\\(bar\\)"`},
		{"c:close()", `the parentheses of "close()"`, `c:"close\\(\\)"`},
		{"args[0]", `the brackets of "args[0]"`, `"args\\[0\\]"`},
		{"a OR b", `the operator is "or"`, "a or b"},
		{"type:repo pond", "r: asks by their names", ""},
		{"a AND b", "terms side by side must all match", ""},
		{"a NOT b", "a dash before a term negates it", ""},
		{"$user", `the $ of "$user" is the beginning or the end of a line; \$ is the character`, `"\\$user"`},
		{"{$IFDEF X}", `\$ is the character`, `"{\\$IFDEF" X}`},
		{"c:a^b", `\^ is the character`, `c:"a\\^b"`},
		{`"$a $b"`, `\$ is the character`, `"\\$a $b"`},
		{"heron;$", `\r?$ does`, `"heron;\\r?$"`},
		{"(a$|b)", `\r?$ does`, `"(a\\r?$|b)"`},
		{"“foo bar”", "not those of a keyboard", `"foo bar"`},
		{"it’s –x", "not those of a keyboard", "it's -x"},
		{`content:"“foo bar”"`, "not those of a keyboard", `content:"\"foo bar\""`},
		{`"it’s" b:main “x y”`, "not those of a keyboard", `"it's" b:main "x y"`},
		{`“foo`, "not those of a keyboard", ""},
		{`c:"– x" -"x“"`, "not those of a keyboard", ""},
		{`content:"(?P<word>$user)"`, `the $ of "$user" is the beginning`, `content:"(?P<word>\\$user)"`},
		{`content:"(?P<word>close())"`, `the parentheses of "close()"`, `content:"(?P<word>close\\(\\))"`},
		{`content:"(?P<word>\\bFish\\b)"`, `a capital, as in "Fish"`, `content:"(?P<word>\\bFish\\b)" case:no`},
		{`content:"(?P<word>\\bfish r:pond -f:_test\\b)"`, `"r:pond -f:_test" is part of the text that is looked for`, `content:"(?P<word>\\bfish\\b)" r:pond -f:_test`},
		{`content:"a b lang:go" x`, `"lang:go" is part of the text that is looked for`, `content:"a b" lang:go x`},
		{`content:"(?P<word>fish)" x`, `"fish" is looked for as a whole word`, `content:"fish" x`},
		{`content:"(?P<word>\\bfish\\b)"`, `"fish" is looked for as a whole word`, `content:"fish"`},
		{`\SKmalloc\W`, `a capital, as in "\SKmalloc\W"`, `\SKmalloc\W case:no`},
		{`\x4bmalloc`, `a capital, as in "\x4bmalloc"`, `\x4bmalloc case:no`},
		{"Kmalloc x", `a capital, as in "Kmalloc"`, "Kmalloc x case:no"},
		{`x path:"*.pnd.go"`, `no path that you may see matches "*.pnd.go"; the nearest: "src/fish/pond.go"`, `x file:"^src/fish/pond\\.go"`},
		{`x path:"*.rs"`, `no path that you may see matches "*.rs"`, ""},
		{"f:src/fihs/pond.go", `the nearest: "src/fish/pond.go"`, `file:"^src/fish/pond\\.go"`},
		{"f:fihs x", `the nearest: "src/fish/"`, `file:"^src/fish/" x`},
		{"f:pnod x", `the nearest: "src/fish/pond.go"`, `file:"^src/fish/pond\\.go" x`},
		{"Fish path:src/fihs/**", `the nearest: "src/fish/"`, `Fish file:"^src/fish/"`},
		{"file:pond-secret x", `no path that you may see matches "pond-secret"`, ""},
	} {
		empty := c.ask(t, tt.query, 2).GetEmpty()
		found := slices.ContainsFunc(empty.GetHints(), func(h *searchv1.Hint) bool {
			return strings.Contains(h.Text, tt.says) && (tt.instead == "" || h.Query == tt.instead)
		})
		for _, hint := range empty.GetHints() {
			if strings.Contains(hint.Text, "P<") {
				t.Errorf("%s: the hint shows how whole words are asked for: %s", tt.query, hint.Text)
			}
			if _, err := searchapi.Parse(hint.Query, 2); hint.Query != "" && err != nil {
				t.Errorf("%s: the hint suggests %s: %v", tt.query, hint.Query, err)
			}
		}
		if text := fmt.Sprint(empty); !found || strings.Contains(text, hidden) || strings.Contains(text, "pond-secret.go") || strings.Contains(text, "Secretlang") || strings.Contains(text, `nearest: "hidden`) {
			t.Errorf("%s: %v, want %q, %s", tt.query, empty.GetHints(), tt.says, tt.instead)
		}
	}
	for _, q := range []string{"plain words", "http://host", "std::move", "r:pond lang:go b:main x", "-r:nowhere -lang:klingon x", "-(r:nowhere Foo) x", "a.b|c", `"foo\\(bar\\)"`, "(a or b) c", "lang:cpp", `\$user`, "[$^]x", "^foo", "(^a|^b)", `x\r?$`, "größe",
		"Fish nowhere", "x case:auto Fish", "Fish -f:nowhere",
		"src/", `needle "src/"`, "needle //", "needle /usr/", "needle c:src/", "needle -src/",
		`\S\D\W`, `foo\B`, `c:"\\Afoo"`, `foo\w`, `(?i)Foo`, `\pLx`, `[^a]z`, `"a b: c"`, `"a f::c"`, `"x r://y"`, `"r:pond"`} {
		if hints := c.ask(t, q, 2).GetEmpty().GetHints(); len(hints) > 0 {
			t.Errorf("%s: %v", q, hints)
		}
	}
}

// TestKnownLanguageWithoutFiles: another language is not suggested for one that is known, however alike their names are.
func TestKnownLanguageWithoutFiles(t *testing.T) {
	hints := startEmpty(t).ask(t, "lang:gap x", 2).GetEmpty().GetHints() // near "Go"
	if len(hints) != 1 || hints[0].Text != "no file that you may see is in GAP" || hints[0].Query != "" {
		t.Errorf("lang:gap: %v", hints)
	}
}

// TestHintsAboutTheVersion: fields of a later version of the query language are texts, and a hint says so.
func TestHintsAboutTheVersion(t *testing.T) {
	c := startEmpty(t)
	for query, want := range map[string]string{
		"path:foo bar": `file:"foo" bar`, "x path:a.go": `x file:"a\\.go"`, "path:Foo": `file:"Foo"`, "path:*.go x": "", "match:any a b": "", "select:repo": "", "ref:x": "", "sym.kind:type": "",
	} {
		field := regexp.MustCompile(`[a-z.]+:`).FindString(query)
		hints := c.ask(t, query, 1).GetEmpty().GetHints()
		if len(hints) == 0 || !strings.Contains(hints[0].Text, fmt.Sprintf("%q is a field of syntax version 2 of the query language, and a text in version 1", field)) || hints[0].Query != want {
			t.Errorf("%s in version 1: %v, want %s", query, hints, want)
		}
	}
}

func (c *cluster) ask(t *testing.T, query string, version uint32) *searchv1.SearchResponse {
	t.Helper()
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: query, Options: &searchv1.SearchOptions{SyntaxVersion: version}})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if resp.Empty == nil {
		t.Fatalf("%s: the answer is not empty: %v", query, resp)
	}
	return resp
}

// TestNoReposYet: a caller who may see no repo hears so, and nothing about the query.
func TestNoReposYet(t *testing.T) {
	for name, roots := range map[string][]*catalogv1.Root{"no repos": nil, "hidden ones": {{Repo: hidden, Branches: []*catalogv1.Branch{{Name: "main"}}}}} {
		c := start(t, 1, func(c *cluster) {
			layout, err := search.NewLayout(7, roots)
			if err == nil {
				c.layout = layout.Only(func(string) bool { return false })
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		for _, query := range []string{"x", "r:pond x", "lang:golnag", "foo(bar)"} {
			hints := c.ask(t, query, 2).GetEmpty().GetHints()
			if len(hints) != 1 || hints[0].GetText() != "no repo that you may see is indexed yet: trawl index URL indexes one" || hints[0].GetQuery() != "" {
				t.Errorf("%s, %s: %v", name, query, hints)
			}
		}
	}
}

// TestHintsOfAnyQuery: no query makes hints that cannot be read, or that are too many.
func TestHintsOfAnyQuery(t *testing.T) {
	c := startEmpty(t)
	piece := rapid.SampledFrom([]string{
		"r:", "lang:", "b:", "-", "$", "^", "“", "[", "]", "(", ")", " ", "or", "OR", "Foo", "foo(", "[0]", `"`, `\`, ":", "path:", "count:", "x", "日", "pond", "*", "ext:", "select:repo ",
	})
	rapid.Check(t, func(rt *rapid.T) {
		query := strings.Join(rapid.SliceOfN(piece, 1, 12).Draw(rt, "pieces"), "")
		resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: query, Options: &searchv1.SearchOptions{SyntaxVersion: 2}})
		if err != nil {
			return
		}
		if hints := resp.Empty.GetHints(); len(hints) > 5 {
			rt.Errorf("%q: %v", query, hints)
		}
	})
}

// TestNothingIsFoundOverThese: an empty answer names the repos that its filters leave, at their commits.
func TestNothingIsFoundOverThese(t *testing.T) {
	c := startEmpty(t)
	for query, want := range map[string]string{
		"x":                 "2 host/lake main@c0-main, host/pond main@c0-main release/1@c0-release/1",
		"r:pond x":          "1 host/pond main@c0-main release/1@c0-release/1",
		"-r:pond x":         "1 host/lake main@c0-main",
		"b:release x":       "1 host/pond main@c0-main release/1@c0-release/1",
		"r:nowhere":         "0 ",
		"lang:klingon x":    "2 host/lake main@c0-main, host/pond main@c0-main release/1@c0-release/1",
		"(type:repo x ) y":  "2 host/lake main@c0-main, host/pond main@c0-main release/1@c0-release/1",
		"-(type:repo x ) y": "2 host/lake main@c0-main, host/pond main@c0-main release/1@c0-release/1",
	} {
		empty := c.ask(t, query, 1).GetEmpty()
		var repos []string
		for _, r := range empty.Searched {
			text := r.Name
			for _, b := range r.Branches {
				text += " " + b.Name + "@" + b.Commit
			}
			repos = append(repos, text)
		}
		if got := fmt.Sprint(empty.Repos, " ", strings.Join(repos, ", ")); got != want {
			t.Errorf("%s: over %s, want %s", query, got, want)
		}
	}
}

// TestNoPlaces: an answer without places of a name says what was searched, and what may be wrong with the query that restricts it.
func TestNoPlaces(t *testing.T) {
	c := startEmpty(t)
	for query, want := range map[string]struct{ repos, hint string }{
		"":             {"2 host/lake host/pond", ""},
		"r:pond":       {"1 host/pond", ""},
		"r:pnod":       {"0", `r:"^host/pond$"`},
		"x lang:golag": {"2 host/lake host/pond", `x lang:"Go"`},
	} {
		definitions, err := c.Definitions(t.Context(), &searchv1.DefinitionsRequest{Name: "Fish", Query: query})
		if err != nil {
			t.Fatal(err)
		}
		references, err := c.References(t.Context(), &searchv1.ReferencesRequest{Name: "Fish", Query: query})
		if err != nil {
			t.Fatal(err)
		}
		for call, empty := range map[string]*searchv1.Empty{"definitions": definitions.Empty, "references": references.Empty} {
			got := fmt.Sprint(empty.GetRepos())
			for _, r := range empty.GetSearched() {
				got += " " + r.Name
			}
			hint := ""
			for _, h := range empty.GetHints() {
				hint += h.Query
			}
			if got != want.repos || hint != want.hint {
				t.Errorf("%s in %q: over %q with the hint %q, want %q and %q", call, query, got, hint, want.repos, want.hint)
			}
		}
	}
}

// TestCountHoldsForAllPages: count: bounds what all pages list together, whatever their sizes.
func TestCountHoldsForAllPages(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		for i := range 30 {
			c.searchers[0].files[d(1)] = append(c.searchers[0].files[d(1)], file("r", fmt.Sprint("path", i), float64(i)))
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.IntRange(1, 40).Draw(rt, "count")
		listed := 0
		for token, first := []byte(nil), true; first || token != nil; first = false {
			resp, err := c.Search(t.Context(), &searchv1.SearchRequest{
				Query: fmt.Sprint("q count:", most), PageToken: token,
				Options: &searchv1.SearchOptions{MaxFiles: uint32(rapid.IntRange(1, 12).Draw(rt, "page size")), SyntaxVersion: 2},
			})
			if err != nil {
				rt.Fatal(err)
			}
			if !first && len(resp.Files) == 0 || resp.Statistics.FilesMatched != 30 {
				rt.Fatalf("a page of %d files of %d", len(resp.Files), resp.Statistics.FilesMatched)
			}
			listed, token = listed+len(resp.Files), resp.NextPageToken
		}
		if listed != min(most, 30) {
			rt.Errorf("%d files with count:%d", listed, most)
		}
	})
}
