package query_test

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/query"
)

// TestQuotedIsMeant: a quoted text matches exactly that text, whatever it contains.
func TestQuotedIsMeant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ a-c"\\():.\-]{1,12}`).Draw(t, "text")
		got, err := query.Parse("content:"+query.Quote(regexp.QuoteMeta(text))+" case:yes", query.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if atom, ok := got.(*query.Substring); !ok || atom.Pattern != text || !atom.CaseSensitive {
			t.Fatalf("%q is read as %v", text, got)
		}
	})
}

func TestGlobs(t *testing.T) {
	for _, tt := range []struct {
		glob, path string
		want       bool
	}{
		{"*.go", "a.go", true}, {"*.go", "b/c/a.go", true}, {"*.go", "a.go/x", false}, {"/*.go", "a.go", true},
		{"src/*.go", "src/a.go", true}, {"src/*.go", "src/b/a.go", false}, {"src/*.go", "x/src/a.go", false},
		{"src/**/*.go", "src/a.go", true}, {"src/**/*.go", "src/b/c/a.go", true}, {"docs/", "docs/a/b.md", true},
		{"docs/", "docs", false}, {"a?c", "abc", true}, {"a?c", "a/c", false}, {"[a-c]x", "bx", true}, {"[!a-c]x", "bx", false},
		{"{a,b}.{go,md}", "b.md", true}, {"{a,b}.go", "c.go", false}, {"a.b", "axb", false}, {"a[[]", "a[", true}, {"a[{]}", "a{}", true},
		{"[]a]x", "]x", true}, {"[]a]x", "bx", false}, {"[!]a]x", "]x", false}, {"[!]a]x", "bx", true}, {"[[a]]", "[]", true},
		{"[^a-c]x", "bx", false}, {"[^a-c]x", "dx", true}, {"[^]a]x", "]x", false}, {`\[a\].go`, "[a].go", true}, {`\[a\].go`, "a.go", false},
		{`a\ b`, "a b", true}, {`\{a\}/*`, "{a}/b", true}, {`a\`, `a\`, true}, {"/*.go", "b/a.go", false}, {"/a/*.go", "a/b.go", true},
		{"a[!x]b", "a/b", false}, {"a[^x]b", "acb", true}, {"a[!x]*", "a/b", false}, {"a[+-9]b", "a/b", false}, {"a[+-9]b", "a.b", true}, {"a[+-9]b", "a9b", true},
		{"a[/]b", "a/b", false}, {"a[b/]c", "a/c", false}, {"a[b/]c", "abc", true}, {"a[--/]b", "a/b", false}, {"a[--/]b", "a-b", true}, {"[!-a]x", "zx", true},
		{"a[!\n]b", "a/b", false}, {"a[!\n]b", "acb", true}, {"a[\x00-\U0010ffff]b", "acb", true}, {"a[\x00-\U0010ffff]b", "a/b", false}, {"a[k]b", "akb", true},
		{"*.[cC]", "a/b.c", true}, {"*.[cC]", "a/b.C", true}, {"[kK\u212a]", "k", true}, {"[kK\u212a]", "\u212a", true}, {"[!aA]b", "ab", false}, {"[!aA]b", "cb", true},
	} {
		if got := regexp.MustCompile(query.PathGlob(tt.glob)).MatchString(tt.path); got != tt.want {
			t.Errorf("%s on %s: %t", tt.glob, tt.path, got)
		}
	}
	for _, tt := range []struct {
		glob, path string
		out        bool
	}{
		{"vendor", "vendor/a.go", true}, {"vendor", "a/vendor/b/c.go", true}, {"vendor", "a/vendor", true}, {"vendor", "vendored/a.go", false},
		{"vendor/", "a/vendor/b.go", true}, {"vendor/", "a/vendor", false}, {"/vendor", "vendor/a.go", true}, {"/vendor", "a/vendor/b.go", false},
		{"/vendor/", "vendor/a.go", true}, {"/vendor/", "a/vendor/b.go", false}, {"src/deep", "src/deep/b.go", true}, {"src/deep", "x/src/deep/b.go", false},
		{"src/deep/", "src/deep/b.go", true}, {"**/vendor", "a/vendor/b.go", true}, {"vendor/**", "vendor/a/b.go", true}, {"vendor/**", "a/vendor/b.go", false},
		{"*.go", "a/b.go", true}, {"*.go", "b.gone", false}, {"*", "a/b", true}, {"*.d", "x.d/y", true}, {"node_*", "a/node_modules/b.js", true},
		{"a[!x]b", "a/b", false}, {"a[!x]b", "acb/d", true},
	} {
		if got := regexp.MustCompile(query.ExcludedGlob(tt.glob)).MatchString(tt.path); got != tt.out {
			t.Errorf("%s leaves out %s: %t", tt.glob, tt.path, got)
		}
	}
	for _, glob := range []string{"[", "a[", "[]", "[!]", "src/[a-z", "{", "*.{c,h", "{{a}", "[!", "*[^", "[z-a]", "x[!b-a]", "\xff", "[\xff]"} {
		if err := query.CheckGlob(glob); err == nil {
			t.Errorf("%s is taken", glob)
		}
		if q, err := query.Parse("path:"+query.Quote(glob), query.ParseOptions{SyntaxVersion: query.MaxSyntaxVersion}); err == nil {
			t.Errorf("path:%s is taken: %v", glob, q)
		}
	}
	for _, glob := range []string{"", "]", "}", "a}", "[a]", "[]]", "[!]]", "{}", "{a,{b,c}}", "[{]", "[[]", `\[`} {
		if err := query.CheckGlob(glob); err != nil {
			t.Error(err)
		}
	}
	for glob, want := range map[string]bool{"Host/org/r": true, "host/*/r": true, "host/*": false, "host/**": true} {
		if got := regexp.MustCompile(query.RepoGlob(glob)).MatchString("host/org/r"); got != want {
			t.Errorf("%s: %t", glob, got)
		}
	}
}

// TestUnquotedOffset: each byte of an expression is found at all its bytes in the quoted one.
func TestUnquotedOffset(t *testing.T) {
	const expression = `a"\\y`
	for offset, want := range []int{0, 1, 1, 2, 2, 3, 3, 4, 5, 5} {
		if got := query.UnquotedOffset(expression, offset); got != want {
			t.Errorf("%d in %s is %d, want %d", offset, query.Quote(expression), got, want)
		}
	}
}
