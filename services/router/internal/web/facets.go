package web

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// facet is a property of the files of a page by which to narrow the search.
type facet struct {
	Name   string
	Values []facetValue
}

// facetValue is a value that some of the files have.
type facetValue struct {
	Text  string
	Files int
	// URL is the search narrowed to the value.
	URL string
}

// maxFacet bounds the values of a facet.
const maxFacet = 10

// facetsOf are the facets of the files that a page shows. One that all files share narrows
// nothing and is left out.
func facetsOf(query string, files []*searchv1.FileMatch) (facets []facet) {
	repos, languages := map[string]int{}, map[string]int{}
	for _, f := range files {
		repos[f.GetRepo()]++
		if f.GetLanguage() != "" {
			languages[f.GetLanguage()]++
		}
	}
	language := func(v string) string { return "lang:" + quote(v) }
	for _, of := range []struct {
		name  string
		count map[string]int
		term  func(string) string
	}{{"Repos", repos, only}, {"Languages", languages, language}} {
		if f := newFacet(of.name, of.count, query, of.term); len(f.Values) > 1 {
			facets = append(facets, f)
		}
	}
	return facets
}

func newFacet(label string, count map[string]int, query string, term func(string) string) facet {
	f := facet{Name: label}
	for value, n := range count {
		narrowed := narrow(query, term(value))
		if narrowed == "" || len(narrowed) > maxURL {
			continue
		}
		f.Values = append(f.Values, facetValue{plain(cutFront(value, 60)), n, searchURL(narrowed)})
	}
	slices.SortFunc(f.Values, func(a, b facetValue) int {
		return cmp.Or(b.Files-a.Files, strings.Compare(a.Text, b.Text))
	})
	f.Values = f.Values[:min(len(f.Values), maxFacet)]
	return f
}

// orWord is the operator that binds less tightly than a term at its side.
var orWord = regexp.MustCompile(`(^|[\s)])or($|[\s(])`)

// narrow is the query with one more term; empty if there is no such query.
func narrow(query, term string) string {
	narrowed := strings.TrimSpace(query) + " " + term
	if orWord.MatchString(query) {
		narrowed = term + " (" + strings.TrimSpace(query) + " )"
	}
	if _, err := searchapi.Parse(narrowed, syntaxVersion); err != nil {
		return ""
	}
	return narrowed
}

// quote writes an expression, or a text, as a value of the query language. One that needs no
// quotes has none.
func quote(expression string) string {
	if plainValue.MatchString(expression) {
		return expression
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(expression) + `"`
}

var plainValue = regexp.MustCompile(`^[\w./\\^$+#-]+$`)
