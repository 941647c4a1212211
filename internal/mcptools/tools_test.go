package mcptools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"

	"github.com/trawl-search/trawl/internal/testrun"
)

// pond is a small library.
func pond() map[string]map[string]string {
	return map[string]map[string]string{
		"github.com/acme/pond": {
			"README.md":             "# Pond\nAll about fish.\n",
			"cmd/pond/main.go":      "package main\n\nfunc main() {\n\tfeed(\"fish\")\n}\n",
			"internal/fish/carp.go": "package fish\n\n// Carp is a fish.\ntype Carp struct{ Age int }\n\nfunc (c *Carp) Feed() error { return nil }\n",
			"internal/fish/pike.go": "package fish\n\n// Pike eats carp (raw).\ntype Pike struct{}\n",
		},
		"github.com/acme/lake": {"boat.go": "package lake\n\nfunc Row() {}\n"},
	}
}

// answers are what tools say of the pond.
var answers = []struct {
	tool string
	args args
	want []string
	not  []string
}{
	{"grep", args{"patterns": []string{`func \(c`, "Carp"}}, []string{`func \(c: 1 match in 1 file`, "Carp: 3 matches in 1 file", "github.com/acme/pond@0123456789ab (main)", "internal/fish/carp.go", "    6: func (c *Carp) Feed() error { return nil }", "Complete."}, nil},
	{"grep", args{"patterns": []string{"carp"}, "ignore_case": true}, []string{"4 matches in 2 files"}, nil},
	{"grep", args{"patterns": []string{"(raw)."}, "literal": true}, []string{"1 match in 1 file", "3: // Pike eats carp (raw)."}, nil},
	{"grep", args{"patterns": []string{"feed"}, "context": 1}, []string{"    3- func main() {\n    4: \tfeed(\"fish\")\n    5- }"}, nil},
	{"grep", args{"patterns": []string{"fish"}, "paths": []string{"*.go"}, "exclude": []string{"cmd/**"}}, []string{"3 matches in 2 files"}, []string{"README", "main.go"}},
	{"grep", args{"patterns": []string{"fish"}, "paths": []string{"*.go"}, "exclude": []string{"cmd"}}, []string{"3 matches in 2 files"}, []string{"README", "main.go"}},
	{"grep", args{"patterns": []string{"package"}, "repos": []string{"github.com/acme/*"}}, []string{"4 matches in 4 files"}, nil},
	{"grep", args{"patterns": []string{"package"}, "repos": []string{"GitHub.com/Acme/Lake"}}, []string{"1 match in 1 file"}, []string{"no repo"}},
	{"grep", args{"patterns": []string{"package"}, "detail": "files"}, []string{"4 matches in 4 files, counts by file", "boat.go: 1"}, nil},
	{"grep", args{"patterns": []string{"fish"}, "detail": "numbers"}, []string{"internal/fish/carp.go:1,3"}, nil},
	{"grep", args{"patterns": []string{"whale"}}, []string{"0 matches in 0 files", "Complete over 2 repos at these commits: github.com/acme/lake@0123456789ab (main), github.com/acme/pond@0123456789ab (main)."}, nil},
	{"grep", args{"patterns": []string{"fish"}, "repos": []string{"github.com/acme/pond", "github.com/acme/lakes"}},
		[]string{"5 matches", `no repo "github.com/acme/lakes" is published, or you may not see it; the nearest: "github.com/acme/lake"`}, nil},
	{"grep", args{"patterns": []string{"fish"}, "repos": []string{"github.com/acme/pond", ""}}, []string{"5 matches", "repo: value length must be at least 1"}, nil},
	{"grep", args{"patterns": []string{"fish"}, "paths": []string{"internal/fsh/*.go"}}, []string{"0 matches", "no file is in scope", "the nearest paths: internal/fish/"}, nil},
	{"grep", args{"patterns": []string{"$user"}}, []string{`the $ is the end of a line; try \$user` + "\n", "Note: no term to replace\n"}, []string{"another term"}},
	{"grep", args{"patterns": []string{"fish", "$user"}, "paths": []string{"*.go"}}, []string{`the $ is the end of a line; try \$user` + "\n", "Note: no term to replace\n"}, []string{"another term"}},
	{"grep", args{"patterns": []string{"$user"}, "paths": []string{"*.nosuch"}}, []string{"no file is in scope"}, []string{"no term to replace"}},
	{"grep", args{"patterns": []string{"$user"}, "repos": []string{"nosuch*"}}, []string{"no repo is in scope"}, []string{"no term to replace"}},
	{"search", args{"query": "type:file whale", "repos": []string{"github.com/acme/pond"}}, []string{"0 matches", "Note: no term to replace\n"}, nil},
	{"grep", args{"patterns": []string{"All about"}, "paths": []string{"readme.md"}}, []string{"1 match in 1 file"}, []string{"Note"}},
	{"grep", args{"patterns": []string{"all about"}, "paths": []string{"Readme.md"}, "ignore_case": true}, []string{"0 matches", "a capital makes a glob case-sensitive"}, nil},
	{"grep", args{"patterns": []string{"fish", "a("}}, []string{"fish: 5 matches", "a(: cannot read a⟨here⟩(: position 1", "set literal"}, nil},
	{"grep", args{"patterns": []string{"fish"}, "max_tokens": 900_000}, []string{"max_tokens can be 1000 to 25000"}, nil},
	{"search", args{"query": "Carp Feed"}, []string{"in 1 file", "internal/fish/carp.go"}, []string{"any of them"}},
	{"search", args{"query": "Where is the whale, and how does Carp feed"}, []string{"no file has all words; files with any of: whale Carp feed: 5 matches in 2 files", "internal/fish/carp.go"}, nil},
	{"search", args{"query": "what does whom"}, []string{"no file has all words; files with any of: whom: 0 matches"}, nil},
	{"search", args{"query": "how does"}, []string{"files with any of them"}, nil},
	{"search", args{"query": "Carp whale"}, []string{"no file has all words; files with any of them", "internal/fish/carp.go"}, nil},
	{"search", args{"query": "fish language:klingon"}, []string{"there is no such field; try fish lang:klingon"}, nil},
	{"grep", args{"patterns": []string{"whale", "CARP"}}, []string{"Note: CARP is found in another case: set ignore_case\n"}, []string{"whale is found"}},
	{"grep", args{"patterns": []string{"CARP"}, "paths": []string{"cmd/**"}}, []string{"0 matches"}, []string{"another case"}},
	{"glob", args{"patterns": []string{"CARP.go"}}, []string{"0 files", "the nearest paths: internal/fish/carp.go; a capital makes a glob case-sensitive, and paths match in another case\n"}, []string{"a capital;", "case:no"}},
	{"glob", args{"patterns": []string{"Whale.go"}}, []string{"0 files"}, []string{"another case", "a capital"}},
	{"search", args{"query": "Feed", "paths": []string{"CARP.go"}}, []string{"paths match in another case\n"}, nil},
	{"grep", args{"patterns": []string{"Feed"}, "paths": []string{"CARP.go"}}, []string{"paths match in another case\n"}, []string{"Feed is found"}},
	{"search", args{"query": "match:any Feed whale"}, []string{"internal/fish/carp.go  [without whale]\n"}, nil},
	{"grep", args{"patterns": []string{"whale"}, "branch": "mian"}, []string{"Note: no file is in scope", "Note: no such branch\n"}, []string{"b:main"}},
	{"glob", args{"patterns": []string{"*.go"}, "branch": "mian"}, []string{"Note: no such branch\n"}, nil},
	{"search", args{"query": "CARP", "repos": []string{"github.com/acme/pond"}}, []string{"Note: a capital; try CARP case:no\n"}, []string{"another term"}},
	{"search", args{"query": "fish f:README"}, []string{"README.md", "2: All about fish."}, []string{"carp.go"}},
	{"glob", args{"patterns": []string{"*.go"}}, []string{"4 files", "cmd/pond/main.go", "boat.go"}, []string{"README"}},
	{"glob", args{"patterns": []string{"internal/**/*.{go,md}", "README*"}}, []string{"3 files"}, nil},
	{"glob", args{"patterns": []string{"carb.go"}}, []string{"0 files", "the nearest paths: internal/fish/carp.go"}, nil},
	{"read_file", args{"files": []args{
		{"repo": "github.com/acme/pond", "path": "internal/fish/carp.go", "start": 3, "end": 4},
		{"repo": "github.com/acme/pond", "path": "README.md"},
		{"repo": "github.com/acme/pond", "path": "internal/fish/crap.go"},
		{"repo": "github.com/acme/pnd", "path": "README.md"},
	}}, []string{
		"github.com/acme/pond@0123456789ab internal/fish/carp.go lines 3-4", "3: // Carp is a fish.\n4: type Carp struct{ Age int }\n",
		"README.md lines 1-2 of 2\n1: # Pond\n2: All about fish.\n", `the nearest: "internal/fish/carp.go"`, `no repo "github.com/acme/pnd" is published`, `the nearest: "github.com/acme/pond"`,
	}, []string{"5: "}},
	{"definitions", args{"names": []string{"Feed", "Carp"}}, []string{"Feed: 1 match in 1 file", "    6: func (c *Carp) Feed() error { return nil }  [method in Carp]", "    4: type Carp struct{ Age int }  [type]"}, []string{"// Carp"}},
	{"references", args{"names": []string{"Carp"}}, []string{"2 matches in 1 file", "    3: // Carp is a fish.\n", "    6: func (c *Carp) Feed"}, []string{"4: "}},
	{"references", args{"names": []string{"feed"}}, []string{"1 match in 1 file", "\tfeed(\"fish\")  [in function main]"}, nil},
	{"references", args{"names": []string{"fish"}, "paths": []string{"*.md"}}, []string{"1 match in 1 file", "README.md"}, nil},
	{"definitions", args{"names": []string{"Feed"}, "repos": []string{"github.com/acme/lake"}}, []string{"0 matches", "Complete over 1 repo"}, nil},
	{"definitions", args{"names": []string{"Crap"}}, []string{"0 matches", "Note: \"Crap\" is not defined where the query looks; the nearest: \"Carp\"\n"}, nil},
	{"references", args{"names": []string{"Feed"}}, []string{"0 matches", "Note: \"Feed\" is defined, and used nowhere that the query looks"}, []string{"is not defined"}},
	{"list_tree", args{"repo": "github.com/acme/pond"}, []string{"4 files, to depth 2", "  README.md\n  cmd/pond/ (1 file)\n  internal/fish/ (2 files)\n"}, nil},
	{"list_tree", args{"repo": "github.com/acme/pond", "path": "internal/", "depth": 3}, []string{"  fish/carp.go\n  fish/pike.go\n"}, []string{"README"}},
	{"list_repos", args{}, []string{"2 repos", "github.com/acme/pond: 4 files", "main@0123456789ab"}, nil},
	{"grep", args{"patterns": []string{"carp"}, "repos": []string{"*pon*"}}, []string{"0 matches", "Note: no repo is in scope: a glob matches whole names"}, nil},
	{"grep", args{"patterns": []string{"carp"}, "repos": []string{"**pon*"}}, []string{"1 match in 1 file"}, []string{"Note"}},
	{"list_repos", args{"pattern": "LAKE"}, []string{"1 repo\n", "github.com/acme/lake"}, []string{"pond"}},
	{"list_refs", args{"repo": "github.com/acme/pond"}, []string{"main@0123456789ab"}, []string{"lake"}},
	{"count", args{"patterns": []string{"fish"}}, []string{"5 matches in 4 files, counts by repo and directory", "  internal/fish/: 3 in 2 files"}, nil},
}

// TestAnswers checks each tool's answers over a small library.
func TestAnswers(t *testing.T) {
	session := connect(t, newLibrary(t, pond()))
	for _, c := range answers {
		r := good(t, session, c.tool, c.args)
		for _, want := range c.want {
			if !strings.Contains(r.text, want) {
				t.Errorf("%s %v: no %q in\n%s", c.tool, c.args, want, r.text)
			}
		}
		for _, not := range c.not {
			if strings.Contains(r.text, not) {
				t.Errorf("%s %v: %q is in\n%s", c.tool, c.args, not, r.text)
			}
		}
		if len(r.data) == 0 {
			t.Errorf("%s %v: no structured content", c.tool, c.args)
		}
	}
}

// TestRepoWithoutFiles: a repo whose commits have no files is in no list, but it exists.
func TestRepoWithoutFiles(t *testing.T) {
	repos := pond()
	repos["github.com/acme/bare"] = map[string]string{}
	session := connect(t, newLibrary(t, repos))
	r := good(t, session, "grep", args{"patterns": []string{"fish"}, "repos": []string{"github.com/acme/bare"}})
	if !strings.Contains(r.text, "0 matches in 0 files") {
		t.Error(r.text)
	}
}

// TestErrorsSayWhatToDo: a call that cannot be answered gives an error for the model,
// which is short whatever was sent.
func TestErrorsSayWhatToDo(t *testing.T) {
	session := connect(t, newLibrary(t, pond()))
	huge := strings.Repeat("x", 300_000)
	for _, arguments := range []any{[]string{"x"}, `{"patterns": ["x"]}`, 1} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "grep", Arguments: arguments})
		if err != nil || !result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, "one object of JSON") {
			t.Errorf("%v: %v, %v", arguments, result, err)
		}
	}
	for _, c := range []struct {
		tool string
		args args
		want string
	}{
		{"grep", args{"patterns": []string{}}, "want 1 to 8"},
		{"grep", args{"patterns": strings.Split(strings.Repeat("x", 9), "")}, "want 1 to 8"},
		{"grep", args{"patterns": []string{""}}, "glob lists files"},
		{"grep", args{"patterns": []string{`a\`}}, "position 1"},
		{"grep", args{"patterns": []string{"(?=x)"}}, "cannot read"},
		{"grep", args{"patterns": []string{huge}}, "16384"},
		{"grep", args{"patterns": huge}, "patterns"},
		{"grep", args{"patterns": []string{"x"}, "detail": huge}, "detail: xxx"},
		{"grep", args{"patterns": []string{"x"}, "cursor": "nonsense"}, "cursor belongs to another call"},
		{"grep", args{"patterns": []string{"x"}, "no_such": 1}, "no_such"},
		{"grep", args{"patterns": []string{"x"}, "context": -1}, "context is -1: want a whole number from 0 to 4294967295"},
		{"grep", args{"patterns": []string{"x"}, "context": 1.5}, "context is 1.5: want a whole number"},
		{"grep", args{"patterns": []string{"x"}, "max_tokens": json.Number("99999999999999999999")}, "max_tokens is 99999999999999999999: want a whole number from -4294967295 to 4294967295"},
		{"definitions", args{"names": []string{"x"}, "from": args{"repo": "r", "path": "p", "line": -3}}, "from.line is -3: want a whole number"},
		{"read_file", args{"files": []args{{"repo": "r", "path": "p", "start": 1e12}}}, "files[0].start is 1000000000000: want a whole number"},
		{"grep", args{"patterns": []string{"x"}, "repos": []string{"github.com/acme/pnod"}}, `the nearest: "github.com/acme/pond"`},
		{"search", args{"query": "  "}, "it is empty"},
		{"search", args{"query": "fish select:dir"}, "grep with detail directories"},
		{"search", args{"query": "(fish", "paths": []string{"*.go"}}, "position"},
		{"search", args{"query": "fish) or (pond", "repos": []string{"github.com/acme/lake"}}, "cannot read fish⟨here⟩) or (pond: position 4"},
		{"search", args{"query": "fish or"}, "cannot read fish ⟨here⟩or: position 5"},
		{"glob", args{"patterns": []string{}}, "want globs"},
		{"glob", args{"patterns": []string{"*.go", "["}}, `"[" has a [ without its ]`},
		{"grep", args{"patterns": []string{"x"}, "paths": []string{"*.{c,h"}}, "{ without its }"},
		{"grep", args{"patterns": []string{"x"}, "exclude": []string{"[a"}}, "[ without its ]"},
		{"references", args{"names": []string{"x"}, "repos": []string{"host/[a"}}, "[ without its ]"},
		{"read_file", args{"files": []args{}}, "want 1 to 32"},
		{"read_file", args{"files": []args{{"repo": "github.com/acme/pond", "path": "README.md", "start": 9}}}, "it has 2 lines: start 9"},
		{"read_file", args{"files": []args{{"repo": "github.com/acme/pond", "path": "README.md", "start": 2, "end": 1}}}, "end 1 is before start 2"},
		{"read_file", args{"files": []args{{"repo": "github.com/acme/pond", "path": huge}}}, "no file …"},
		{"read_file", args{"files": []args{{"repo": "github.com/acme/pond", "path": "README.md", "branch": "release/1"}}}, `on branch "release/1", but on branch "main"`},
		{"read_file", args{"files": []args{{"repo": "github.com/acme/pond", "path": "README.md", "branch": "nope"}}}, `the nearest: "main", "release/1"`},
		{"list_tree", args{"repo": "acme/pnod"}, `the nearest: "github.com/acme/pond"; list_repos shows all`},
		{"list_tree", args{"repo": "github.com/acme/pond", "path": "README.md"}, "README.md is a file: read_file reads it"},
		{"list_tree", args{"repo": "github.com/acme/pond", "path": "internal/fish/carp.go/"}, "internal/fish/carp.go is a file: read_file reads it"},
		{"list_tree", args{"repo": "github.com/acme/pond", "depth": "two"}, `depth: two has type "string", want "integer"`},
		{"list_tree", args{"path": "x"}, `the argument "repo" is needed: name of one repo`},
		{"read_file", args{"files": []args{{"repo": "github.com/acme/pond", "path": "internal"}}}, "it is a directory, with internal/fish/; list_tree lists more"},
		{"read_file", args{"files": []args{{"repo": "acme/pond", "path": "/internal/fish/"}}}, "it is a directory, with internal/fish/carp.go,"},
		{"read_file", args{"files": []args{{"repo": "github.com/acme/pond", "path": ""}}}, "it is a directory, with README.md,"},
		{"read_file", args{"files": []args{{"repo": "github.com/acme/pond", "path": "."}}}, "it is a directory, with README.md,"},
		{"read_file", args{"files": []args{{"repo": "github.com/acme/pond", "pth": "README.md"}}}, `there is no argument "files[0].pth"; the nearest: "path"; these are: branch, end, path, repo, start`},
		{"read_file", args{"files": []args{{"repo": "github.com/acme/pond"}}}, `the argument "files[0].path" is needed: path in the repo`},
		{"read_file", args{"repo": "github.com/acme/pond"}, `there is no argument "repo"; these are: files, max_tokens`},
		{"read_file", args{"files": args{"repo": "acme/pond", "path": "README.md"}}, `files: map[path:README.md repo:acme/pond] has type "object", want "array"`},
		{"grep", args{"patterns": []any{args{"pattern": "x"}}}, `patterns: map[pattern:x] has type "object", want "string"`},
		{"search", args{"quer": "x"}, `there is no argument "quer"; the nearest: "query"; these are: `},
		{"search", args{}, `the argument "query" is needed: words that must all be in a file`},
		{"list_tree", args{"repo": "github.com/acme/pond", "path": "internal/fsh"}, `the nearest: "internal/fish/"; glob and list_tree find paths`},
		{"list_repos", args{"pattern": "pnod"}, `the nearest: "github.com/acme/pond"`},
		{"list_repos", args{"pattern": "*pon*"}, "no repo that you may see has a name that matches *pon*: a glob matches whole names"},
		{"list_refs", args{"repo": "github.com/acme/pnd"}, `the nearest: "github.com/acme/pond"`},
	} {
		r := ask(t, session, c.tool, c.args)
		if !r.failed || !strings.Contains(r.text, c.want) || len(r.text) > maxError {
			t.Errorf("%s %.80v: error %v, no %q in %.300s", c.tool, c.args, r.failed, c.want, r.text)
		}
	}
}

// TestArgumentsAsMeant: null is as good as nothing, and the last parts of a repo's name are enough where they are those of one repo.
func TestArgumentsAsMeant(t *testing.T) {
	session := connect(t, newLibrary(t, pond()))
	for _, c := range []struct {
		tool string
		args args
		want string
	}{
		{"grep", args{"patterns": []string{"carp"}, "repos": nil, "cursor": nil, "max_tokens": nil}, "carp"},
		{"list_tree", args{"repo": "pond", "path": nil}, "github.com/acme/pond@"},
		{"list_tree", args{"repo": "acme/pond"}, "github.com/acme/pond@"},
		{"read_file", args{"files": []args{{"repo": "pond", "path": "README.md", "branch": nil}}}, "github.com/acme/pond@"},
	} {
		if r := ask(t, session, c.tool, c.args); r.failed || !strings.Contains(r.text, c.want) {
			t.Errorf("%s %v: error %v, %s", c.tool, c.args, r.failed, r.text)
		}
	}
}

// TestIncompleteAnswersSaySo: an answer claims nothing about parts that were not
// searched.
func TestIncompleteAnswersSaySo(t *testing.T) {
	library := newLibrary(t, pond())
	library.incomplete = true
	session := connect(t, library)
	for _, pattern := range []string{"fish", "whale"} {
		r := good(t, session, "grep", args{"patterns": []string{pattern}})
		if !strings.Contains(r.text, "INCOMPLETE: 1 of 2 shards was searched in part,") || !strings.Contains(r.text, "searched in part: 1 shard of host/away: the time was over\n") ||
			strings.Contains(r.text, "Complete") || !strings.Contains(r.text, "at least") || !r.results(t).Results[0].LowerBounds {
			t.Errorf("%s:\n%s", pattern, r.text)
		}
	}
}

// TestFilteredQueryClaimsNoMore: a query that rules repos out does not claim to have searched those of its scope.
func TestFilteredQueryClaimsNoMore(t *testing.T) {
	r := good(t, connect(t, newLibrary(t, pond())), "search", args{"query": "whale r:nosuch"})
	if !strings.Contains(r.text, "Complete.") || strings.Contains(r.text, "acme") {
		t.Error(r.text)
	}
}

// TestHostileNames: names of any bytes reach the model as one line, and tools accept them as
// they were shown.
func TestHostileNames(t *testing.T) {
	names := []string{"a\nb: fake", "\x1b[2J.go", "\xff\xfe.go", `"quoted".go`, "\u202ertl.go", " space ", strings.Repeat("n", 3000), "tab\there"}
	files := make(map[string]string)
	for i, name := range names {
		files[name] = fmt.Sprintf("needle %d\n\x1b[31mneedle\x00\xff\u202e\n", i)
	}
	session := connect(t, newLibrary(t, map[string]map[string]string{"host/hostile": files}))
	of := good(t, session, "glob", args{"patterns": []string{"**"}, "max_tokens": 25_000}).results(t).Results[0]
	if of.Files != uint64(len(names)) {
		t.Fatalf("%d files, want %d", of.Files, len(names))
	}
	for _, f := range of.Repos[0].Files {
		if !utf8.ValidString(f.Path) || strings.ContainsAny(f.Path, "\n\x1b\t\u202e") {
			t.Errorf("shown as %q", f.Path)
		}
		r := good(t, session, "read_file", args{"files": []args{{"repo": "host/hostile", "path": f.Path}}})
		if !strings.Contains(r.text, "1: needle ") || strings.ContainsAny(r.text, "\x1b\x00") {
			t.Errorf("%s is read as %q", f.Path, r.text)
		}
	}
}

// TestOddFiles: files without lines, with a line longer than any page, and with very many
// lines.
func TestOddFiles(t *testing.T) {
	session := connect(t, newLibrary(t, map[string]map[string]string{"r": {
		"empty": "", "no-newline": "one", "long": strings.Repeat("abcdefgh", 1<<18) + "\nsecond\n",
		"many": strings.Repeat("line\n", 100_000),
	}}))
	for path, want := range map[string]string{"empty": "r@0123456789ab empty\n", "no-newline": "lines 1-1 of 1\n1: one\n", "long": "2: second"} {
		if r := good(t, session, "read_file", args{"files": []args{{"repo": "r", "path": path}}}); !strings.Contains(r.text, want) {
			t.Errorf("%s: no %q in %.300q", path, want, r.text)
		}
	}
	r := good(t, session, "read_file", args{"files": []args{{"repo": "r", "path": "many", "start": 99_990}, {"repo": "r", "path": "many"}}})
	var of passages
	must(t, json.Unmarshal(r.data, &of))
	if first, second := of.Files[0], of.Files[1]; first.End != 100_000 || first.Next != 0 || second.Start != 1 || second.Next != second.End+1 || second.End < 1000 {
		t.Errorf("to line %d, then %d; to line %d, then %d", first.End, first.Next, second.End, second.Next)
	}
}

// hung is an API that does not answer before its caller gives up.
type hung struct{ started, ended atomic.Int64 }

func (h *hung) wait(ctx context.Context) error {
	h.started.Add(1)
	<-ctx.Done()
	h.ended.Add(1)
	return ctx.Err()
}

func (h *hung) Search(ctx context.Context, _ *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	return nil, h.wait(ctx)
}

func (h *hung) List(ctx context.Context, _ *searchv1.ListRequest) (*searchv1.ListResponse, error) {
	return nil, h.wait(ctx)
}

func (h *hung) Definitions(ctx context.Context, _ *searchv1.DefinitionsRequest) (*searchv1.DefinitionsResponse, error) {
	return nil, h.wait(ctx)
}

func (h *hung) GetFile(ctx context.Context, _ *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	return nil, h.wait(ctx)
}

func (h *hung) ListTree(ctx context.Context, _ *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error) {
	return nil, h.wait(ctx)
}

// overHTTP connects a client to the tools over HTTP.
func overHTTP(t *testing.T, api API, wallTime time.Duration) *mcp.ClientSession {
	t.Helper()
	handler := New(func() API { return api }, everyTool(), "test", slog.New(slog.DiscardHandler)).Handler(wallTime)
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: web.URL, HTTPClient: client, DisableStandaloneSSE: true,
	}, nil)
	must(t, err)
	t.Cleanup(func() { _ = session.Close() }) // there is no session to end
	return session
}

// TestCancelledCallsEnd: a call that its client cancels ends its requests at once, over
// both transports.
func TestCancelledCallsEnd(t *testing.T) {
	for name, connect := range map[string]func(*testing.T, API) *mcp.ClientSession{
		"stdio": func(t *testing.T, api API) *mcp.ClientSession { return connect(t, api) },
		"http":  func(t *testing.T, api API) *mcp.ClientSession { return overHTTP(t, api, time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			for tool, arguments := range map[string]args{
				"grep": {"patterns": []string{"a", "b"}}, "search": {"query": "a b"}, "glob": {"patterns": []string{"*"}}, "list_repos": {},
				"read_file": {"files": []args{{"repo": "r", "path": "p"}, {"repo": "r", "path": "q"}}}, "list_tree": {"repo": "r"},
				"definitions": {"names": []string{"a"}, "from": args{"repo": "r", "path": "p", "line": 1}},
			} {
				h := &hung{}
				session := connect(t, h)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
					done <- err
				}()
				testrun.Until(t, tool+" asks", func() bool { return h.started.Load() > 0 })
				cancelled := time.Now()
				cancel()
				if err := <-done; err == nil {
					t.Errorf("%s: no error", tool)
				}
				testrun.Until(t, tool+" stops", func() bool { return h.started.Load() == h.ended.Load() })
				t.Logf("%s stopped after %v", tool, time.Since(cancelled))
			}
		})
	}
}

// TestWallTime: a call over HTTP ends within its time, whatever it asks.
func TestWallTime(t *testing.T) {
	h := &hung{}
	r := ask(t, overHTTP(t, h, 50*time.Millisecond), "grep", args{"patterns": []string{"x"}})
	if !r.failed || !strings.Contains(r.text, "the time for this call is over") || h.started.Load() == 0 || h.started.Load() != h.ended.Load() {
		t.Errorf("%v, %d of %d ended: %s", r.failed, h.ended.Load(), h.started.Load(), r.text)
	}
}

// TestRequestsOverHTTP: a request that is not a single message is refused.
func TestRequestsOverHTTP(t *testing.T) {
	handler := New(func() API { return &hung{} }, everyTool(), "test", slog.New(slog.DiscardHandler)).Handler(time.Minute)
	for _, c := range []struct {
		method, body string
		want         int
	}{
		{http.MethodGet, "", http.StatusMethodNotAllowed},
		{http.MethodDelete, "", http.StatusMethodNotAllowed},
		{http.MethodPost, " \n[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 999) + "{}]", http.StatusBadRequest},
		{http.MethodPost, strings.Repeat("x", maxBody+1), http.StatusRequestEntityTooLarge},
		{http.MethodPost, "nonsense", http.StatusBadRequest},
		{http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, http.StatusOK},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, Path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != c.want || w.Header().Get("Mcp-Session-Id") != "" {
			t.Errorf("%s %.40s: %d %s, want %d", c.method, c.body, w.Code, w.Body, c.want)
		}
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, iotest.ErrReader(io.ErrUnexpectedEOF)))
	if w.Code != http.StatusBadRequest {
		t.Errorf("a body that breaks off: %d %s", w.Code, w.Body)
	}
}

// TestDefaultTools: the eight tools of the default take few tokens of a conversation.
func TestDefaultTools(t *testing.T) {
	var cfg Config
	cfg.SetDefaults()
	must(t, cfg.Validate())
	server := New(func() API { return &hung{} }, cfg, "test", slog.New(slog.DiscardHandler))
	here, there := mcp.NewInMemoryTransports()
	go func() { _ = server.Run(t.Context(), there) }() // it ends with its client
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	must(t, err)
	defer session.Close()
	list, err := session.ListTools(t.Context(), nil)
	must(t, err)
	if n := len(encode(list)) / bytesPerToken; len(list.Tools) != 8 || n > 3500 {
		t.Errorf("%d tools, described in %d tokens", len(list.Tools), n)
	}
	for _, tool := range list.Tools {
		if text := string(encode(tool)); strings.Contains(text, `"type":[`) {
			t.Errorf("%s has an argument of several types: %s", tool.Name, text)
		}
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s does not say that it changes nothing", tool.Name)
		}
	}
	cfg.Tools = []string{"grep", "gerp"}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "gerp") {
		t.Errorf("an unknown tool: %v", err)
	}
}

// TestLongLines: one long line, with however many matches, does not hide the lines of other files, and is shown around its first match
// with the bytes that are left out, in every detail that shows lines and by every tool that does.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("q", 900_000) + " stork(9) " + strings.Repeat("w stork ", 500) + strings.Repeat("é", 400_000)
	files := map[string]string{"dist/bundle.js": long + "\n", "dist/other.js": "short\n" + long + "\nstork(4)\n", "five.txt": strings.Repeat("q", 5000) + " END\n"}
	for i := range 3 {
		files[fmt.Sprintf("src/f%d.js", i)] = fmt.Sprintf("function f%d() { return stork(%d) }\n", i, i)
	}
	session := connect(t, newLibrary(t, map[string]map[string]string{"r": files}))
	const match = " bytes left out)…"
	for _, c := range []struct {
		tool string
		args args
	}{
		{"grep", args{"patterns": []string{"stork"}}},
		{"grep", args{"patterns": []string{"stork"}, "context": 2}},
		{"grep", args{"patterns": []string{"stork"}, "detail": "short"}},
		{"grep", args{"patterns": []string{"stork"}, "detail": "lines"}},
		{"references", args{"names": []string{"stork"}}},
		{"search", args{"query": "stork"}},
	} {
		r := good(t, session, c.tool, c.args)
		for _, want := range []string{"return stork(0)", "return stork(1)", "return stork(2)", "stork(4)", match, "q stork(9) w", "1006 matches in 5 files"} {
			if !strings.Contains(r.text, want) && !(c.tool == "search" && (want == "stork(4)" || strings.HasSuffix(want, " files"))) {
				t.Errorf("%s %v: no %q in\n%.3000s", c.tool, c.args, want, r.text)
			}
		}
	}
	for path, want := range map[string]string{"five.txt": "…(3004 bytes left out)", "dist/bundle.js": fmt.Sprintf("…(%d bytes left out)", len(long)-2000)} {
		if r := good(t, session, "read_file", args{"files": []args{{"repo": "r", "path": path}}}); !strings.Contains(r.text, want) {
			t.Errorf("%s: no %q in %.100q", path, want, r.text)
		}
	}
}
