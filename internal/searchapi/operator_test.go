package searchapi_test

import (
	"testing"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// TestMisread: an operator of other search engines between two terms is pointed out also where its text is found, and no other text is.
func TestMisread(t *testing.T) {
	for text, want := range map[string][2]string{
		"fish OR catch":               {`"OR" is a text: the operator is "or", in lower case`, "fish or catch"},
		"( fish || catch ) lang:go":   {`"||" is a text: the operator is "or", in lower case`, "( fish or catch ) lang:go"},
		"fish AND catch":              {`"AND" is a text: terms side by side must all match without it`, ""},
		"fish && catch":               {`"&&" is a text: terms side by side must all match without it`, ""},
		"fish NOT catch":              {`"NOT" is a text: a dash before a term negates it, as in -file:test`, ""},
		"fish or catch":               {},
		"fish and catch":              {},
		"fish | catch":                {},
		"OR fish":                     {},
		"fish OR":                     {},
		`fish "OR" catch`:             {},
		`content:"fish OR catch" f:x`: {},
		"fish c:OR catch":             {},
		"fish -OR catch":              {},
		"(":                           {},
	} {
		if got := searchapi.Misread(text, query.MaxSyntaxVersion); got.GetText() != want[0] || got.GetQuery() != want[1] {
			t.Errorf("%s: %v, want %q", text, got, want)
		}
	}
}
