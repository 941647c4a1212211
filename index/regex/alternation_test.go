package regex

import (
	"strings"
	"testing"
)

func TestLiteralsOf(t *testing.T) {
	for pattern, want := range map[string]string{
		`foo`:               `"foo"`,
		`(foo|ba[rz])`:      `"foo" "bar" "baz"`,
		`foo(bar)?`:         `"foobar" "foo"`,
		`foo(bar)??x`:       `"foox" "foobarx"`,
		`(a|b)(c|d)`:        `"ac" "ad" "bc" "bd"`,
		`(foobar|foo|food)`: `"foobar" "foo" "food"`,
		`(?i)foo|BAR`:       `"foo"i "bar"i`,
		`1(?i)foo`:          `"1foo"i`,
		`a(?i)foo`:          ``,
		`foo|`:              ``,
		`foo|x*`:            ``,
		`\bfoo`:             ``,
		`^foo`:              ``,
		`[a-z]{2}`:          ``,
		`foo\x{FFFD}`:       ``,
		`[\x{FFFD}a]b`:      ``,
		`[^a]foo`:           ``,
	} {
		list, ok := LiteralsOf(mustParse(t, pattern), true)
		words := make([]string, len(list))
		for i, l := range list {
			words[i] = l.String()
		}
		if got := strings.Join(words, " "); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s (%v), want %s", pattern, got, ok, want)
		}
	}
}

func TestReachOf(t *testing.T) {
	for pattern, want := range map[string]Reach{
		`foo`:                        {},
		`foo|foobar`:                 {Bytes: 6},
		`foo\w+`:                     {Lines: true},
		`foo\s\w`:                    {Lines: true, Bytes: 5},
		`foo\s+bar`:                  {Lines: true, Open: true},
		`foo\s{900}x{900}[\s日]{999}`: {Lines: true, Open: true},
		`foo\z`:                      {Whole: true},
		`^foo.*bar$`:                 {Lines: true},
		`\w+\.(foo|bar)b`:            {Lines: true},
	} {
		if got := ReachOf(mustParse(t, pattern), true); got != want {
			t.Errorf("%s: %+v, want %+v", pattern, got, want)
		}
	}
}
