package zoekt

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/trawl-search/trawl/internal/searchapi"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

func zoektQuery(tb testing.TB, text string) *webserverv1.Q {
	tb.Helper()
	q := &webserverv1.Q{}
	if err := prototext.Unmarshal([]byte(text), q); err != nil {
		tb.Fatal(err)
	}
	return q
}

// bitmap is the serialized set of the numbers of repos, and of one that no repo has.
func bitmap(tb testing.TB, repos ...string) []byte {
	tb.Helper()
	set := roaring.BitmapOf(7)
	for _, name := range repos {
		set.Add(testID(name))
	}
	b, err := set.ToBytes()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

var known = []string{"host/one", "host/three", "host/two"}

// TestNodes: every node that a query of zoekt can have.
func TestNodes(t *testing.T) {
	ids := func(repos ...string) *webserverv1.Q {
		return &webserverv1.Q{Query: &webserverv1.Q_RepoIds{RepoIds: &webserverv1.RepoIds{Repos: bitmap(t, repos...)}}}
	}
	pair := func(branch string, repos ...string) *webserverv1.BranchRepos {
		return &webserverv1.BranchRepos{Branch: branch, Repos: bitmap(t, repos...)}
	}
	branches := func(list ...*webserverv1.BranchRepos) *webserverv1.Q {
		return &webserverv1.Q{Query: &webserverv1.Q_BranchesRepos{BranchesRepos: &webserverv1.BranchesRepos{List: list}}}
	}
	for _, c := range []struct {
		q    *webserverv1.Q
		want string
	}{
		{zoektQuery(t, `const: true`), `all`},
		{zoektQuery(t, `const: false`), `none`},
		{zoektQuery(t, `substring {pattern: "a.b"}`), `substring:"a.b"`},
		{zoektQuery(t, `substring {pattern: "a" content: true case_sensitive: true}`), `case content substring:"a"`},
		{zoektQuery(t, `substring {pattern: "a" file_name: true}`), `file substring:"a"`},
		{zoektQuery(t, `substring {pattern: "a" file_name: true content: true}`), `substring:"a"`},
		{zoektQuery(t, `substring {}`), `all`},
		{zoektQuery(t, `regexp {regexp: "a.b" case_sensitive: true}`), `case regexp:"(?-s:a.b)"`},
		{zoektQuery(t, `regexp {regexp: "(abc)(de)" content: true}`), `content substring:"abcde"`},
		{zoektQuery(t, `symbol {expr {substring {pattern: "a" content: true}}}`), `(symbol substring:"a")`},
		{zoektQuery(t, `symbol {expr {regexp {regexp: "^a" case_sensitive: true}}}`), `(symbol case regexp:"(?m:^a)")`},
		{zoektQuery(t, `language {language: "C++"}`), `lang:"C++"`},
		{zoektQuery(t, `repo {regexp: "^a$"}`), `repo:"(?-m:\\Aa$)"`},
		{zoektQuery(t, `repo_regexp {regexp: "a"}`), `repo:"a"`},
		{zoektQuery(t, `repo_set {set {key: "b" value: true} set {key: "a" value: true} set {key: "c"}}`), `(repos ["a" "b"])`},
		{zoektQuery(t, `file_name_set {set: "a.go" set: "b(c"}`), `case file regexp:"\\A(?:a\\.go|b\\(c)\\z"`},
		{zoektQuery(t, `file_name_set {}`), `none`},
		{zoektQuery(t, `branch {pattern: "HEAD"}`), `branch:"HEAD"`},
		{zoektQuery(t, `branch {pattern: "main" exact: true}`), `branch="main"`},
		{zoektQuery(t, `meta {key: "k" value: "v"}`), `meta."k":"v"`},
		{zoektQuery(t, `boost {boost: 20 child {substring {pattern: "a"}}}`), `substring:"a"`},
		{zoektQuery(t, `type {child {substring {pattern: "a"}} type: KIND_FILE_NAME}`), `(type:filename substring:"a")`},
		{zoektQuery(t, `type {child {substring {pattern: "a"}} type: KIND_FILE_MATCH}`), `(type:filematch substring:"a")`},
		{zoektQuery(t, `type {child {substring {pattern: "a"}} type: KIND_REPO}`), `(type:repo substring:"a")`},
		{zoektQuery(t, `raw_config {flags: FLAG_ONLY_PUBLIC flags: FLAG_NO_FORKS flags: FLAG_ONLY_ARCHIVED}`), `(and public:yes fork:no archived:yes)`},
		{zoektQuery(t, `raw_config {flags: FLAG_ONLY_PRIVATE flags: FLAG_ONLY_FORKS flags: FLAG_NO_ARCHIVED}`), `(and public:no fork:yes archived:no)`},
		{zoektQuery(t, `raw_config {}`), `all`},
		{zoektQuery(t, `and {children {substring {pattern: "a"}} children {not {child {substring {pattern: "b"}}}}}`), `(and substring:"a" (not substring:"b"))`},
		{zoektQuery(t, `or {children {substring {pattern: "a"}} children {substring {pattern: "b"}}}`), `(or substring:"a" substring:"b")`},
		{zoektQuery(t, `or {}`), `none`},
		{ids("host/one", "host/two"), `(repos ["host/one" "host/two"])`},
		{ids(), `none`},
		{&webserverv1.Q{Query: &webserverv1.Q_RepoIds{RepoIds: &webserverv1.RepoIds{}}}, `none`},
		{branches(pair("HEAD", "host/one")), `(and branch="HEAD" (repos ["host/one"]))`},
		{branches(pair("HEAD", "host/one"), pair("dev", "host/two", "host/three")),
			`(or (and branch="HEAD" (repos ["host/one"])) (and branch="dev" (repos ["host/three" "host/two"])))`},
		{branches(), `none`},
	} {
		tree, err := translate(t.Context(), &fake{names: known}, c.q)
		if err != nil {
			t.Fatalf("%v: %v", c.q, err)
		}
		if got, err := searchapi.ParseAny("", tree, 1); err != nil || got.String() != c.want {
			t.Errorf("%v: %v, want %s, %v", c.q, got, c.want, err)
		}
	}
}

// TestNodesThatAreRefused: each error says which field, and what to send.
func TestNodesThatAreRefused(t *testing.T) {
	many := &webserverv1.BranchesRepos{}
	for range maxSets + 1 {
		many.List = append(many.List, &webserverv1.BranchRepos{Branch: "HEAD", Repos: bitmap(t)})
	}
	deep := strings.Repeat("not {child {", 1001) + "const: true" + strings.Repeat("}}", 1001)
	for _, c := range []struct {
		q    *webserverv1.Q
		want string
	}{
		{nil, "a node is empty"},
		{zoektQuery(t, ``), "a node is empty"},
		{zoektQuery(t, `not {}`), "a node is empty"},
		{zoektQuery(t, `and {children {}}`), "a node is empty"},
		{zoektQuery(t, `boost {}`), "a node is empty"},
		{zoektQuery(t, `type {type: KIND_REPO}`), "a node is empty"},
		{zoektQuery(t, `type {type: 9 child {const: true}}`), "want KIND_FILE_MATCH"},
		{zoektQuery(t, `symbol {}`), "want a substring or a regexp"},
		{zoektQuery(t, `symbol {expr {const: true}}`), "want a substring or a regexp"},
		{zoektQuery(t, `raw_config {flags: 3}`), "unknown flag 3"},
		{zoektQuery(t, `repo_ids {repos: "no bitmap"}`), "not a serialized roaring bitmap"},
		{zoektQuery(t, `branches_repos {list {repos: "\x3a\x30"}}`), "branches_repos.list.repos"},
		{&webserverv1.Q{Query: &webserverv1.Q_BranchesRepos{BranchesRepos: many}}, "more than 100 sets"},
		{zoektQuery(t, deep), "inside each other"},
	} {
		_, err := translate(t.Context(), &fake{names: known}, c.q)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.100v: %v, want %s", c.q, err, c.want)
		}
	}
	unavailable := &fake{err: status.Error(codes.Unavailable, "no roots")}
	full := &fake{full: searchapi.Overloaded("used up", time.Second)}
	if _, err := translate(t.Context(), full, zoektQuery(t, `repo_ids {}`)); !searchapi.IsOverloaded(err) {
		t.Errorf("for a caller who has used up its allowance: %v", err)
	}
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	if _, err := translate(late, &fake{}, zoektQuery(t, `repo_ids {}`)); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("when the time is over: %v", err)
	}
	if _, err := translate(t.Context(), unavailable, zoektQuery(t, `repo_ids {}`)); status.Code(err) != codes.Unavailable {
		t.Errorf("without roots: %v", err)
	}
}

// BenchmarkNumbers is what a set of numbers costs a router of 100,000 repos.
//
//	go test -run '^$' -bench Numbers ./services/router/internal/zoekt
func BenchmarkNumbers(b *testing.B) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("github.com/organisation/repo%d", i)
	}
	q := &webserverv1.Q{Query: &webserverv1.Q_RepoIds{RepoIds: &webserverv1.RepoIds{Repos: bitmap(b, names[:50_000]...)}}}
	for b.Loop() {
		if _, err := translate(b.Context(), &fake{names: names}, q); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzNumbers: no bytes make reading or asking a set fail.
func FuzzNumbers(f *testing.F) {
	f.Add(bitmap(f, "a", "b"))
	dense := roaring.New()
	dense.AddRange(0, 1<<20)
	dense.RunOptimize()
	runs, err := dense.ToBytes()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(runs)
	f.Fuzz(func(t *testing.T, b []byte) {
		set, err := parseIDs(b)
		if err != nil {
			return
		}
		for id := range uint32(100) {
			set.Contains(id * 65_521 * 653)
		}
	})
}
