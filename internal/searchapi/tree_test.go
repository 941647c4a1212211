package searchapi_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func tree(tb testing.TB, text string) *searchv1.Query {
	tb.Helper()
	q := &searchv1.Query{}
	if err := prototext.Unmarshal([]byte(text), q); err != nil {
		tb.Fatal(err)
	}
	return q
}

// TestTrees: each node of a tree means the same as its counterpart in the query
// language.
func TestTrees(t *testing.T) {
	for written, text := range map[string]string{
		`all: true`:             ``,
		`all: false`:            `-content:`,
		`and {}`:                ``,
		`or {}`:                 `-content:`,
		`text {pattern: "a.b"}`: `case:no a\.b`,
		`text {pattern: "a.b" regexp: true case_sensitive: true}`:        `case:yes a.b`,
		`text {pattern: "A" scope: TEXT_SCOPE_CONTENT}`:                  `case:no c:A`,
		`text {pattern: "A" scope: TEXT_SCOPE_PATH}`:                     `case:no f:A`,
		`text {pattern: "^A" regexp: true scope: TEXT_SCOPE_DEFINITION}`: `case:no sym:^A`,
		`text {pattern: ""}`: ``,
		`and {queries {repo: "^a$"} queries {not {language: "golang"}}}`:                                      `r:^a$ -lang:go`,
		`or {queries {branch {name: "HEAD"}} queries {meta {key: "k" expression: "v"}}}`:                      `b:HEAD or meta.k:v`,
		`fact {kind: KIND_PUBLIC value: true}`:                                                                `public:yes`,
		`fact {kind: KIND_ARCHIVED}`:                                                                          `archived:no`,
		`fact {kind: KIND_FORK}`:                                                                              `fork:no`,
		`returned {kind: KIND_FILE_NAME query {text {pattern: "a"}}}`:                                         `type:file case:no a`,
		`returned {kind: KIND_FILE_MATCH query {text {pattern: "a"}}}`:                                        `type:filematch case:no a`,
		`and {queries {returned {kind: KIND_REPO query {text {pattern: "a"}}}} queries {text {pattern:"b"}}}`: `case:no (type:repo a ) b`,
		`language: "klingon"`:                                                                                 `-content:`,
	} {
		got, err := searchapi.ParseAny("", tree(t, written), 1)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		want, err := searchapi.Parse(text, 1)
		if err != nil || got.String() != want.String() {
			t.Errorf("%s: %s, want %s, %v", written, got, want, err)
		}
	}
	for written, want := range map[string]string{
		`repos {names: ["b", "a"]}`:         `(repos ["a" "b"])`,
		`repos {}`:                          `none`,
		`branch {name: "main" exact: true}`: `branch="main"`,
	} {
		if got, err := searchapi.ParseAny("", tree(t, written), 1); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", written, got, err)
		}
	}
}

func TestTreesThatAreWrong(t *testing.T) {
	deep := strings.Repeat("not {", 101) + "all: true" + strings.Repeat("}", 101)
	for written, want := range map[string]string{
		``:                                    "has no kind",
		`not {}`:                              "has no kind",
		`and {queries {}}`:                    "has no kind",
		`returned {kind: KIND_REPO}`:          "has no kind",
		`returned {query {all: true}}`:        "what to return is unknown",
		`fact {}`:                             "the fact is unknown",
		`text {pattern: "(" regexp: true}`:    `the expression "("`,
		`text {scope: TEXT_SCOPE_DEFINITION}`: "an empty name of a symbol",
		`repo: "("`:                           "for names of repos",
		deep:                                  "depth",
		`text {pattern: "` + strings.Repeat("x", 20_000) + `"}`:    "bytes",
		"or {" + strings.Repeat("queries {all: true}", 1001) + "}": "terms",
	} {
		_, err := searchapi.ParseAny("", tree(t, written), 1)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", written, err, want)
		}
	}
	if _, err := searchapi.ParseAny("a", tree(t, `all: true`), 1); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a text and a tree: %v", err)
	}
}

// TestTreeFor: sets of repos have only the wanted names, at any depth, and nothing else
// changes.
func TestTreeFor(t *testing.T) {
	from := `and {queries {repos {names: ["a", "b"]}} queries {not {or {queries {repos {names: "b"}} queries {all: true}}}}
		queries {returned {kind: KIND_REPO query {repos {names: "a"}}}} queries {text {pattern: "x"}}}`
	want := `and {queries {repos {names: ["a"]}} queries {not {or {queries {repos {}} queries {all: true}}}}
		queries {returned {kind: KIND_REPO query {repos {names: "a"}}}} queries {text {pattern: "x"}}}`
	whole := tree(t, from)
	got := searchapi.TreeFor(whole, func(repo string) bool { return repo == "a" })
	if !proto.Equal(got, tree(t, want)) || !proto.Equal(whole, tree(t, from)) {
		t.Errorf("%v, of %v", got, whole)
	}
}

// FuzzTree: no message makes the parser panic.
func FuzzTree(f *testing.F) {
	for _, text := range []string{`all: true`, `and {queries {repo: "a"} queries {not {}}}`, `text {pattern: "a(" regexp: true scope: TEXT_SCOPE_PATH}`} {
		encoded, err := proto.Marshal(tree(f, text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		q := &searchv1.Query{}
		if proto.Unmarshal(encoded, q) != nil {
			return
		}
		parsed, err := searchapi.ParseAny("", q, 1)
		if err == nil && parsed == nil || err != nil && status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v, %v", parsed, err)
		}
	})
}
