package searchapi_test

import (
	"testing"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// TestNamesAreWhole: no part of a longer name is a place of a name, in whatever letters it is written.
func TestNamesAreWhole(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		at         int // the first place, -1 if there is none
	}{
		{"pond", "ponds pond", 6}, {"pond", "a_pond", -1}, {"pond", "fish(pond)", 5}, {"~Pond", "x ~Pond()", 2}, {"operator+", "operator+(a)", 0},
		{"café", "cafés café(x)", 7}, {"café", "un_café", -1}, {"état", "l_état état", 8}, {"état", "étatique", -1}, {"été", "été", 0}, {"été", "étés", -1},
		{"变量", "变量名 = 变量", 12}, {"变量", "旧变量", -1}, {"变量", "f(变量)", 2}, {"x变", "x变量", -1}, {"变x", "变x1 变x", 6},
	} {
		for _, text := range []string{searchapi.DefinitionsOf(tt.name, ""), searchapi.ReferencesOf(tt.name, "")} {
			q, _, err := searchapi.ParseAnswer(text, query.MaxSyntaxVersion)
			if err != nil {
				t.Fatal(err)
			}
			var name query.Q
			switch q := q.(type) {
			case *query.Symbol:
				name = q.Child
			case *query.Reference:
				name = q.Child
			}
			expression, ok := name.(*query.Regexp)
			if !ok {
				t.Fatalf("%s is %v", text, q)
			}
			m, err := regex.NewMatcher(expression.Tree, expression.CaseSensitive)
			if err != nil {
				t.Fatal(err)
			}
			at := -1
			if start, _, ok := m.Find([]byte(tt.text), 0); ok {
				at = start
			}
			if at != tt.at {
				t.Errorf("%s in %q: at %d, want %d", text, tt.text, at, tt.at)
			}
		}
	}
}
