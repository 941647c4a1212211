package web

import (
	"context"
	"slices"
	"strings"
	"time"

	indexquery "github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/lazyregexp"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// facet is a property of all files that match, by which to narrow the search.
type facet struct {
	Name   string
	Values []facetValue
	// More is how many values are not shown; empty if there are none.
	More string
}

// facetValue is a value that some of the files have.
type facetValue struct {
	Text  string
	Files string
	// URL is the search narrowed to the value, Without the search for what does not have it; empty if there is none.
	URL, Without string
}

// facetNames are the headings of facets.
var facetNames = map[searchv1.Facet]string{
	searchv1.Facet_FACET_REPO: "Repos", searchv1.Facet_FACET_LANGUAGE: "Languages",
	searchv1.Facet_FACET_DIRECTORY: "Folders", searchv1.Facet_FACET_BRANCH: "Branches",
}

// pageFacets are the facets of a page of results.
var pageFacets = []searchv1.Facet{searchv1.Facet_FACET_REPO, searchv1.Facet_FACET_LANGUAGE, searchv1.Facet_FACET_DIRECTORY}

// count completes the answer of a search for the best files by the facets and the numbers of all files. It reports whether they
// could be counted in countTime. A count that takes longer is cancelled: one that misses a deadline is a failure in the metrics.
func count(ctx context.Context, answers Answers, query string, resp *searchv1.SearchResponse) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(countTime, cancel).Stop()
	counted, err := answers.Search(ctx, &searchv1.SearchRequest{Query: query, Options: &searchv1.SearchOptions{
		CountOnly: true, Facets: pageFacets, MaxBytes: answerBytes, SyntaxVersion: syntaxVersion,
	}})
	if err != nil {
		return false
	}
	resp.Facets = counted.GetFacets()
	if is, were := resp.GetStatistics(), counted.GetStatistics(); is != nil && resp.GetCoverage().GetComplete() && counted.GetCoverage().GetComplete() {
		is.Matches, is.FilesMatched, is.CountsExact = were.GetMatches(), were.GetFilesMatched(), were.GetCountsExact()
	}
	return true
}

// facetsOf are the facets of an answer. One that all files share narrows nothing and is left out.
func facetsOf(query string, counts []*searchv1.FacetCounts) (facets []facet) {
	for _, c := range counts {
		if f := newFacet(query, c); len(f.Values) > 1 {
			facets = append(facets, f)
		}
	}
	return facets
}

func newFacet(query string, c *searchv1.FacetCounts) facet {
	f := facet{Name: facetNames[c.GetFacet()]}
	if n := c.GetValuesLeftOut(); n > 0 {
		f.More = grouped(n)
	}
	for _, v := range c.GetValues() {
		text, term := facetTerm(c.GetFacet(), v)
		if folder := string(v.GetDirectory()); folder != "" && ofOneRepo(c) {
			text = folder
		}
		if text == "" {
			continue
		}
		value := facetValue{Text: plain(cutFront(text, 60)), Files: grouped(v.GetFiles())}
		if narrowed := narrow(query, term); narrowed != "" && len(narrowed) <= maxURL {
			value.URL = searchURL(narrowed)
		}
		if without := narrow(query, "-("+term+" )"); without != "" && len(without) <= maxURL {
			value.Without = searchURL(without)
		}
		f.Values = append(f.Values, value)
	}
	return f
}

// ofOneRepo reports whether all values of a facet are in one repo, which then need not be named.
func ofOneRepo(c *searchv1.FacetCounts) bool {
	return !slices.ContainsFunc(c.GetValues(), func(v *searchv1.FacetValue) bool { return v.GetRepo() != c.GetValues()[0].GetRepo() })
}

// facetTerm is how a value is shown, and the term that narrows a query to it.
func facetTerm(f searchv1.Facet, v *searchv1.FacetValue) (text, term string) {
	switch f {
	case searchv1.Facet_FACET_REPO:
		return v.GetRepo(), only(v.GetRepo())
	case searchv1.Facet_FACET_LANGUAGE:
		return v.GetName(), "lang:" + quote(v.GetName())
	case searchv1.Facet_FACET_BRANCH:
		return v.GetName(), "b:" + quote(v.GetName())
	case searchv1.Facet_FACET_DIRECTORY:
		folder := string(v.GetDirectory())
		return v.GetRepo() + "/" + folder, only(v.GetRepo()) + " f:" + quote("^"+indexquery.Literal(folder)+"[^/]*$")
	}
	return "", ""
}

// withoutSelect is the query without what makes it list repos or folders.
func withoutSelect(query string) string {
	terms := indexquery.Terms(query, syntaxVersion)
	for _, t := range slices.Backward(terms) {
		if t.Field == "select:" {
			query = query[:t.Start] + query[t.End:]
		}
	}
	return query
}

// orWord is the operator that binds less tightly than a term at its side.
var orWord = lazyregexp.New(`(^|[\s)])or($|[\s(])`)

// narrow is the query with one more term; empty if there is no such query.
func narrow(query, term string) string {
	narrowed := strings.TrimSpace(query) + " " + term
	if orWord().MatchString(query) {
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
	if plainValue().MatchString(expression) {
		return expression
	}
	return indexquery.Quote(expression)
}

var plainValue = lazyregexp.New(`^[\w./\\^$+#-]+$`)
