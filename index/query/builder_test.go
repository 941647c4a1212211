package query_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/query"
)

// TestBuiltAsParsed: the builder makes the same atoms as the parser.
func TestBuiltAsParsed(t *testing.T) {
	options := query.ParseOptions{Language: func(name string) string {
		return map[string]string{"golang": "Go"}[name]
	}}
	b := query.NewBuilder(options)
	type made struct {
		q   query.Q
		err error
	}
	of := func(q query.Q, err error) made { return made{q, err} }
	for text, got := range map[string]made{
		`case:no "FOO.b"`:            of(b.Regexp("FOO.b", false, query.Either)),
		`case:yes c:foo`:             of(b.Regexp("foo", true, query.Content)),
		`case:no f:a\.b\(`:           of(b.Regexp(`a\.b\(`, false, query.FileName)),
		`case:yes (?i)Foo`:           of(b.Regexp("(?i)Foo", true, query.Either)),
		`case:no sym:^New`:           of(b.Symbol("^New", false)),
		`case:yes sym:New`:           of(b.Symbol("New", true)),
		`r:^host/`:                   of(b.Repo("^host/")),
		`meta.team:^in:fra$`:         of(b.Meta("team", "^in:fra$")),
		`b:main`:                     of(b.Branch("main", false)),
		`lang:golang`:                of(b.Language("golang")),
		`lang:klingon`:               of(b.Language("klingon")),
		`archived:no`:                of(b.RepoFact(query.Archived, false)),
		`case:no "\\x{FFFD}"`:        of(b.Regexp("\uFFFD", false, query.Either)),
		`content:`:                   of(b.Regexp("", true, query.Content)),
		`case:no "line\\nbreak\\\\"`: of(b.Regexp("line\nbreak\\\\", false, query.Either)),
	} {
		want, err := query.Parse(text, options)
		if err != nil || got.err != nil {
			t.Fatalf("%s: %v, %v", text, err, got.err)
		}
		if a, b := query.Simplify(got.q).String(), want.String(); a != b {
			t.Errorf("%s: built %s, parsed %s", text, a, b)
		}
	}
}

// TestBuilderKeepsLimits: a tree cannot cost more than a text can.
func TestBuilderKeepsLimits(t *testing.T) {
	for limit, build := range map[string]func(*query.Builder) error{
		query.LimitAtoms: func(b *query.Builder) (err error) {
			for i := 0; i <= 1000 && err == nil; i++ {
				_, err = b.Const(true)
			}
			return err
		},
		query.LimitBytes: func(b *query.Builder) error { _, err := b.Branch(strings.Repeat("x", 16<<10+1), true); return err },
		query.LimitDepth: func(b *query.Builder) (err error) {
			for i := 0; i <= 100 && err == nil; i++ {
				err = b.Enter()
			}
			return err
		},
		query.LimitRepetition: func(b *query.Builder) error { _, err := b.Regexp("(a{100}){100}", false, query.Either); return err },
		query.LimitRepos: func(b *query.Builder) (err error) {
			for i := 0; i < 20 && err == nil; i++ {
				_, err = b.Repo("(ab){500}")
			}
			return err
		},
		query.LimitFilters: func(b *query.Builder) (err error) {
			for i := 0; i <= 500 && err == nil; i++ {
				_, err = b.Regexp("x", true, query.FileName)
			}
			return err
		},
		query.LimitTypeRepo: func(b *query.Builder) (err error) {
			for i := 0; i <= 10 && err == nil; i++ {
				_, err = b.Type(query.KindRepo, &query.Const{})
			}
			return err
		},
	} {
		err := build(query.NewBuilder(query.ParseOptions{}))
		if passed, ok := errors.AsType[*query.LimitError](err); !ok || passed.Limit != limit {
			t.Errorf("%s: %v", limit, err)
		}
	}
}

// TestBuilderErrors: errors name the value and the fault.
func TestBuilderErrors(t *testing.T) {
	b := query.NewBuilder(query.ParseOptions{})
	for want, build := range map[string]func() (query.Q, error){
		`the expression "a(b": query syntax error at byte 1`: func() (query.Q, error) { return b.Regexp("a(b", true, query.Either) },
		`for names of repos`:    func() (query.Q, error) { return b.Repo("[") },
		`the fact "a"`:          func() (query.Q, error) { return b.Meta("a", "*") },
		`a key without a colon`: func() (query.Q, error) { return b.Meta("a:b", "c") },
		`not UTF-8`:             func() (query.Q, error) { return b.Regexp("\xff", true, query.Either) },
		`the name of a symbol`:  func() (query.Q, error) { return b.Symbol("", true) },
	} {
		if _, err := build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
