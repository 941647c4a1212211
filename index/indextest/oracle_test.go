package indextest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/query"
)

// small is a corpus with answers that a reader can check.
var small = &Corpus{Name: "small", Repos: []Repo{
	{Name: "org/one", Branches: []string{"main", "dev"}, Public: true, Meta: map[string]string{"team": "infra"}, Documents: []Document{
		{Path: "a.go", Content: []byte("Foo foo\nbar"), Branches: []string{"main", "dev"}, Language: "Go"},
		{Path: "foo.txt", Content: []byte("nothing"), Branches: []string{"dev"}},
		{Path: "skipped_foo", Branches: []string{"main"}, Skipped: true},
	}},
	{Name: "org/two", Branches: []string{"master"}, Archived: true, Fork: true, Documents: []Document{
		{Path: "k.c", Content: []byte("\u212Aelvin kelvin \xff aaaaa"), Branches: []string{"master"}, Language: "C"},
	}},
}}

// show formats results for a table: path, then ranges.
func show(results []Result) string {
	var parts []string
	for _, r := range results {
		s := r.Path
		for _, x := range r.Content {
			s += fmt.Sprintf(" %d-%d", x.Start, x.End)
		}
		for _, x := range r.Name {
			s += fmt.Sprintf(" name:%d-%d", x.Start, x.End)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func TestEval(t *testing.T) {
	tests := []struct{ query, want string }{
		{"", "a.go, foo.txt, skipped_foo, k.c"},
		{"foo", "a.go 0-3 4-7, foo.txt name:0-3, skipped_foo name:8-11"},
		{"Foo", "a.go 0-3"},
		{"foo case:yes", "a.go 4-7, foo.txt name:0-3, skipped_foo name:8-11"},
		{"c:foo", "a.go 0-3 4-7"},
		{"f:foo", "foo.txt name:0-3, skipped_foo name:8-11"},
		{"foo bar", "a.go 0-3 4-7 8-11"},
		{"foo -bar", "foo.txt name:0-3, skipped_foo name:8-11"},
		{"-foo", "k.c"},
		{"--foo", "a.go, foo.txt, skipped_foo"},
		{"foo or kelvin", "a.go 0-3 4-7, foo.txt name:0-3, skipped_foo name:8-11, k.c 0-8 9-15"},
		// A group that does not hold shows nothing, even if a part of it holds.
		{"bar or (foo aaa)", "a.go 8-11"},
		// Of overlapping ranges the earlier one stays, and of two with the same start the longer
		// one.
		{"Foo or oo.f", "a.go 0-3"},
		{"Fo or Foo", "a.go 0-3"},
		// Occurrences of one text do not overlap each other.
		{"aa", "k.c 18-20 20-22"},
		{"case:yes kelvin", "k.c 9-15"},
		// A regular expression that matches the empty text holds, without ranges.
		{"c:x*", "a.go, foo.txt, k.c"},
		{"c:a*", "a.go 9-10, foo.txt, k.c 18-23"},
		{`c:^bar$`, "a.go 8-11"},
		{`c:\x{FFFD}`, "k.c 16-17"},
		{"r:two", "k.c"},
		{"r:Two", ""},
		{"b:dev", "a.go, foo.txt"},
		{"b:HEAD", "a.go, skipped_foo, k.c"},
		{"b:ma", "a.go, skipped_foo, k.c"},
		{"lang:Go", "a.go"},
		{"lang:go", ""},
		{"archived:yes", "k.c"},
		{"fork:no", "a.go, foo.txt, skipped_foo"},
		{"public:yes -b:main", "foo.txt"},
		{"meta.team:^infra$", "a.go, foo.txt, skipped_foo"},
		{"meta.team:", "a.go, foo.txt, skipped_foo"},
		{"type:file foo", "a.go, foo.txt name:0-3, skipped_foo name:8-11"},
		{"(type:file foo ) bar", "a.go 8-11"},
		{"type:file a", "a.go name:0-1, k.c"},
		{"type:repo bar", "a.go, foo.txt, skipped_foo"},
		{"type:repo nowhere", ""},
		{"-(type:repo bar )", "k.c"},
	}
	for _, tt := range tests {
		q, err := query.Parse(tt.query, query.ParseOptions{})
		if err != nil {
			t.Fatalf("%s: %v", tt.query, err)
		}
		if q, err = Resolve(small, q); err != nil {
			t.Fatalf("%s: %v", tt.query, err)
		}
		results, err := Eval(small, q)
		if got := show(results); err != nil || got != tt.want {
			t.Errorf("%s (%s)\n got %s, %v\nwant %s", tt.query, q, got, err, tt.want)
		}
	}
}

func TestEvalErrors(t *testing.T) {
	for text, want := range map[string]error{
		"type:repo foo": query.ErrUnresolved,
	} {
		q, err := query.Parse(text, query.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Eval(small, q); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", text, err, want)
		}
	}
}

func TestBranchExact(t *testing.T) {
	results, err := Eval(small, &query.Branch{Pattern: "ma", Exact: true})
	if err != nil || len(results) != 0 {
		t.Errorf("got %s, %v, want nothing", show(results), err)
	}
}

// TestSubstring compares the substring finder with the standard library, which finds the same in
// other ways.
func TestSubstring(t *testing.T) {
	const seed = 7
	m := maker{rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range 3000 {
		content := m.prose(1 + m.rng.IntN(80))
		pattern := validPart(m.prose(1 + m.rng.IntN(4)))
		if pattern == "" {
			continue
		}
		for prefix, caseSensitive := range map[string]bool{"(?i)": false, "": true} {
			want, _ := expression(regexp.MustCompile(prefix + regexp.QuoteMeta(pattern)))(&text{bytes: content})
			got, found := substring(pattern, caseSensitive)(&text{bytes: content})
			if !reflect.DeepEqual(got, want) || found != (len(want) > 0) {
				t.Fatalf("seed %d, round %d: %q in %q, case %v: got %v, want %v", seed, i, pattern, content, caseSensitive, got, want)
			}
		}
	}
}
