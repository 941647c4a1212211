package render_test

import (
	"strings"
	"testing"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestRest: what an answer has besides its files, for people, for programs and as JSON. Notes do not mix with what is piped
// on.
func TestRest(t *testing.T) {
	selected := &searchv1.SearchResponse{Selected: searchv1.Facet_FACET_DIRECTORY, Facets: []*searchv1.FacetCounts{{
		Facet: searchv1.Facet_FACET_DIRECTORY, ValuesLeftOut: 3, FilesNotCounted: 1,
		Values: []*searchv1.FacetValue{{Repo: "host/pond", Directory: []byte("a\xff/"), Files: 12}, {Repo: "host/\x1b[0m", Files: 1}},
	}}}
	nothing := &searchv1.SearchResponse{Coverage: &searchv1.Coverage{Complete: true}, Empty: &searchv1.Empty{
		Repos: 1, Searched: []*searchv1.SearchedRepo{{Name: "host/pond", Branches: []*searchv1.BranchEntry{{Name: "main", Commit: "0123456789abcdef"}}}},
		Hints: []*searchv1.Hint{{Text: "no language is called \x1bklingon", Query: "lang:Kotlin"}},
	}}
	ofMany := &searchv1.SearchResponse{Coverage: &searchv1.Coverage{Complete: true}, Empty: &searchv1.Empty{Repos: 300, Searched: nothing.Empty.Searched}}
	both := &searchv1.SearchResponse{Facets: []*searchv1.FacetCounts{
		{Facet: searchv1.Facet_FACET_REPO, Values: []*searchv1.FacetValue{{Repo: "host/pond", Files: 12}}, ValuesLeftOut: 2},
		{Facet: searchv1.Facet_FACET_LANGUAGE, Values: []*searchv1.FacetValue{{Name: "Go", Files: 11}, {Files: 1}}},
	}}
	const over = "0 matches, complete over 1 repo: host/pond main@0123456789ab\nhint: no language is called \\x1bklingon; try lang:Kotlin\n"
	const more = "… and 3 more; write count: for another number of them\n1 file more could not be counted apart: the numbers are lower bounds\n"
	var out, notes strings.Builder
	for name, tt := range map[string]struct {
		rest       func(*searchv1.SearchResponse) error
		resp       *searchv1.SearchResponse
		out, notes string
	}{
		"people": {render.NewText(&out, false, false).Rest, selected, "      12  host/pond a\\xff/\n       1  host/\\x1b[0m\n" + more, ""},
		"lines":  {render.NewLines(&out, &notes, render.LineStyle{}).Rest, selected, "host/pond:a\\xff/:12\nhost/\\x1b[0m:1\n", more},
		"paths":  {render.NewPaths(&out, &notes, false, false, true).Rest, selected, "host/pond:a\\xff/:12\x00host/\\x1b[0m:1\x00", more},
		"JSON":   {render.NewJSON(&out).Rest, selected, `{"type":"facet","facet":"directory","repo":"host/pond","directory_bytes":"Yf8v","files":12}` + "\n" + `{"type":"facet","facet":"directory","repo":"host/\u001b[0m","files":1}` + "\n", ""},
		"two facets to people": {
			render.NewText(&out, false, false).Rest, both,
			"By repo\n      12  host/pond\n… and 2 more\nBy language\n      11  Go\n       1  (unknown)\n", "",
		},
		"two facets to programs": {
			render.NewCounts(&out, &notes, false, true).Rest, both, "repo:host/pond:12\nlanguage:Go:11\nlanguage:(unknown):1\n", "… and 2 more\n",
		},
		"nothing to people":     {render.NewText(&out, false, false).Rest, nothing, over, ""},
		"nothing in many repos": {render.NewText(&out, false, false).Rest, ofMany, "0 matches, complete over 300 repos\n", ""},
		"nothing to lines":      {render.NewLines(&out, &notes, render.LineStyle{}).Rest, nothing, "", over},
		"nothing as JSON":       {render.NewJSON(&out).Rest, nothing, `{"type":"nothing","repos":1,"searched":[{"repo":"host/pond","branches":{"main":"0123456789abcdef"}}],"hints":[{"text":"no language is called \u001bklingon","query":"lang:Kotlin"}]}` + "\n", ""},
	} {
		out.Reset()
		notes.Reset()
		if err := tt.rest(tt.resp); err != nil || out.String() != tt.out || notes.String() != tt.notes {
			t.Errorf("%s: %v\n%q, want\n%q\nnotes %q, want\n%q", name, err, out.String(), tt.out, notes.String(), tt.notes)
		}
	}
}
