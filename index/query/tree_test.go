package query

import (
	"errors"
	"fmt"
	"reflect"
	"regexp/syntax"
	"slices"
	"testing"
)

func sub(text string) Q { return &Substring{Pattern: text} }

func TestSimplify(t *testing.T) {
	all, none := &Const{Value: true}, &Const{}
	tests := []struct {
		q    Q
		want string
	}{
		{&And{}, "all"},
		{&Or{}, "none"},
		{&And{Children: []Q{sub("a")}}, `substring:"a"`},
		{&And{Children: []Q{sub("a"), all}}, `substring:"a"`},
		{&And{Children: []Q{sub("a"), none}}, "none"},
		{&Or{Children: []Q{sub("a"), all}}, "all"},
		{&Or{Children: []Q{sub("a"), none}}, `substring:"a"`},
		{&And{Children: []Q{sub("a"), &And{Children: []Q{sub("b"), &And{Children: []Q{sub("c")}}}}}},
			`(and substring:"a" substring:"b" substring:"c")`},
		{&Or{Children: []Q{&Or{Children: []Q{sub("a"), sub("b")}}, &And{Children: []Q{sub("c"), sub("d")}}}},
			`(or substring:"a" substring:"b" (and substring:"c" substring:"d"))`},
		{&Not{Child: all}, "none"},
		{&Not{Child: &And{Children: []Q{none, sub("a")}}}, "all"},
		{&Not{Child: &Not{Child: sub("a")}}, `(not (not substring:"a"))`},
		{&Type{Kind: KindRepo, Child: &Or{Children: []Q{all}}}, "all"},
		{&Type{Kind: KindFileName, Child: &Or{Children: []Q{sub("a")}}}, `(type:filename substring:"a")`},
		{sub(""), "all"},
		{sub("a\uFFFD"), `regexp:"a�"`},
		{&Branch{}, "all"},
		{&Branch{Exact: true}, `branch=""`},
		{NewRepoSet(), "none"},
		{NewRepoSet("b", "a"), `(repos ["a" "b"])`},
		{&Regexp{Tree: &syntax.Regexp{Op: syntax.OpEmptyMatch}}, "all"},
		{&Repo{Tree: &syntax.Regexp{Op: syntax.OpEmptyMatch}}, "all"},
		// An empty text within a symbol is still a symbol.
		{&Symbol{Child: sub("")}, `(symbol substring:"")`},
	}
	for _, tt := range tests {
		before := tt.q.String()
		got := Simplify(tt.q)
		if got.String() != tt.want {
			t.Errorf("Simplify(%s) = %s, want %s", before, got, tt.want)
		}
		if tt.q.String() != before {
			t.Errorf("Simplify changed its argument %s to %s", before, tt.q)
		}
		if again := Simplify(got); !reflect.DeepEqual(again, got) {
			t.Errorf("Simplify(%s) = %s, not the same", got, again)
		}
	}
}

func TestWalk(t *testing.T) {
	q := parse(t, "a (b or -c) type:file sym:d")
	var seen []string
	Walk(q, func(n Q) bool {
		seen = append(seen, fmt.Sprintf("%T", n))
		_, or := n.(*Or)
		return !or
	})
	want := []string{"*query.Type", "*query.And", "*query.Substring", "*query.Or", "*query.Symbol"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

func TestMap(t *testing.T) {
	q := parse(t, "a -(b or f:a)")
	before := q.String()
	got := Map(q, func(n Q) Q {
		if s, ok := n.(*Substring); ok && s.Pattern == "a" {
			return &Const{Value: false}
		}
		return n
	})
	if want := `(and none (not (or substring:"b" none)))`; got.String() != want || q.String() != before {
		t.Errorf("got %s, want %s; the argument is %s, was %s", got, want, q, before)
	}
}

func TestResolveRepos(t *testing.T) {
	q := parse(t, "(type:repo a (type:repo b )) -(type:repo c ) d")
	var asked []string
	got, err := ResolveRepos(q, func(child Q) ([]string, error) {
		asked = append(asked, child.String())
		return map[string][]string{`substring:"b"`: {"x", "y"}, `substring:"c"`: nil}[child.String()], nil
	})
	want := []string{`substring:"b"`, `(and substring:"a" (repos ["x" "y"]))`, `substring:"c"`}
	if err != nil || !slices.Equal(asked, want) {
		t.Errorf("asked for %q, %v, want %q", asked, err, want)
	}
	if got.String() != "none" {
		t.Errorf("got %s, want none: no repo has a in x or y", got)
	}
	failure := errors.New("no etcd")
	calls := 0
	_, err = ResolveRepos(q, func(Q) ([]string, error) { calls++; return nil, failure })
	if !errors.Is(err, failure) || calls != 1 {
		t.Errorf("error %v after %d calls, want the first failure", err, calls)
	}
}

// TestTextOfSimplified: simplified trees have the same text if and only if they mean the same.
func TestTextOfSimplified(t *testing.T) {
	textOf := func(q Q) string { return Simplify(q).String() }
	same := []string{"a b", " a  (b) ", "(a b)", "a b case:auto", "a (b ) c:"}
	for _, text := range same {
		if textOf(parse(t, text)) != textOf(parse(t, same[0])) {
			t.Errorf("%q and %q differ", text, same[0])
		}
	}
	seen := map[string]string{}
	for _, text := range []string{"a b", "b a", "a", "A", "c:a", "f:a", "a.", "case:yes a", "-a", "a or b", `"a b"`, `"substring:\"a"`,
		"r:a", "b:a", "lang:go", "sym:a", "type:file a", "type:repo a", "archived:yes", "archived:no", "fork:yes", "public:yes", "meta.a:b", "meta.a:c", "meta.c:b"} {
		f := textOf(parse(t, text))
		if other, ok := seen[f]; ok {
			t.Errorf("%q and %q are the same", text, other)
		}
		seen[f] = text
	}
	if textOf(NewRepoSet("a", "b")) != textOf(&RepoSet{Names: map[string]bool{"b": true, "a": true, "c": false}}) {
		t.Error("sets with the same repos differ")
	}
}

func TestNamesOfUnknownValues(t *testing.T) {
	if got := (&RepoFact{Fact: 9}).String() + Kind(9).String() + Scope(9).String(); got != "unknown(9):nounknown(9)unknown(9)" {
		t.Errorf("got %s", got)
	}
}
