package cli

import (
	"slices"
	"strings"
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// counted is an answer without files, by repo and language.
func counted() *searchv1.SearchResponse {
	return &searchv1.SearchResponse{
		Statistics: &searchv1.Statistics{FilesMatched: 12, Matches: 31, CountsExact: true}, Coverage: &searchv1.Coverage{Complete: true},
		Facets: []*searchv1.FacetCounts{
			{Facet: searchv1.Facet_FACET_REPO, Values: []*searchv1.FacetValue{{Repo: "host/pond", Files: 12}}},
			{Facet: searchv1.Facet_FACET_LANGUAGE, Values: []*searchv1.FacetValue{{Name: "Go", Files: 9}, {Name: "C", Files: 3}}},
		},
	}
}

// TestCounts: the flags ask for counts without files, and print what comes.
func TestCounts(t *testing.T) {
	repo, language := searchv1.Facet_FACET_REPO, searchv1.Facet_FACET_LANGUAGE
	for _, tt := range []struct {
		args   []string
		facets []searchv1.Facet
		values uint32
		out    string
	}{
		{[]string{"--count-only"}, nil, allValues, "31 matches in 12 files\n"},
		{[]string{"--count-only", "--heading"}, nil, valuesForPeople, "31 matches in 12 files, 0 of 0 shards searched, "},
		{[]string{"--facets", "repo,language"}, []searchv1.Facet{repo, language}, allValues, "repo:host/pond:12\nlanguage:Go:9\nlanguage:C:3\n"},
		{[]string{"--facets", "language", "--json"}, []searchv1.Facet{language}, allValues, `{"type":"facet","facet":"language","name":"Go","files":9}` + "\n"},
	} {
		answer := counted()
		answer.Facets = slices.DeleteFunc(answer.Facets, func(c *searchv1.FacetCounts) bool { return !slices.Contains(tt.facets, c.GetFacet()) })
		s := &scripted{answer: answer}
		exit, out, errs := trawl(t, s, append([]string{"search", "fish"}, tt.args...)...)
		if exit != 0 || !strings.HasPrefix(out, tt.out) || errs != "" {
			t.Errorf("%v: exit %d, printed %q, want %q\n%s", tt.args, exit, out, tt.out, errs)
		}
		o := s.searched.GetOptions()
		if !o.GetCountOnly() || !slices.Equal(o.GetFacets(), tt.facets) || o.GetMaxFacetValues() != tt.values {
			t.Errorf("%v: asked for %v", tt.args, o)
		}
	}
	for _, args := range [][]string{
		{"--facets", "colour"}, {"--facets", "repo,repo"}, {"--facets", "repo", "-l"}, {"--count-only", "-q"}, {"--count-only", "-c"},
		{"--count-only", "--top"}, {"--facets", "repo", "--max-files", "3"}, {"--count-only", "-o"}, {"--count-only", "--files"},
	} {
		if exit, _, errs := trawl(t, &scripted{answer: counted()}, append([]string{"search", "fish"}, args...)...); exit != 2 || errs == "" {
			t.Errorf("%v: exit %d: %s", args, exit, errs)
		}
	}
	none := counted()
	none.Facets, none.Statistics.FilesMatched, none.Statistics.Matches = nil, 0, 0
	if exit, out, _ := trawl(t, &scripted{answer: none}, "search", "fish", "--count-only"); exit != 1 || out != "0 matches in 0 files\n" {
		t.Errorf("nothing: exit %d, printed %q", exit, out)
	}
}

// TestQueriesAreOfVersionTwo: the command line reads the fields of its own help.
func TestQueriesAreOfVersionTwo(t *testing.T) {
	s := &scripted{answer: oneFile()}
	if exit, _, errs := trawl(t, s, "search", "TODO select:repo"); exit != 0 || s.searched.GetOptions().GetSyntaxVersion() != 2 {
		t.Errorf("exit %d, asked for %v\n%s", exit, s.searched, errs)
	}
}

// TestFacetsAreCompleted: a shell offers the facets that the list does not have yet.
func TestFacetsAreCompleted(t *testing.T) {
	for typed, want := range map[string]string{"": "branch directory language repo", "l": "language", "repo,": "repo,branch repo,directory repo,language", "x": ""} {
		exit, out, errs := run(t, nil, "__complete", "search", "x", "--facets", typed)
		offers, _, _ := strings.Cut(out, "\n:")
		if strings.HasPrefix(out, ":") {
			offers = ""
		}
		if got := strings.Join(strings.Fields(offers), " "); exit != 0 || got != want {
			t.Errorf("%q: offered %q, want %q (exit %d)\n%s", typed, got, want, exit, errs)
		}
	}
}
