package search_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

var allFacets = []search.Facet{search.ByBranch, search.ByRepo, search.ByFolder, search.ByLanguage}

// TestFacets counts the results of random queries by every facet and compares with the oracle's
// documents.
func TestFacets(t *testing.T) {
	for seed := range testrun.Rounds[uint64](10, 20) {
		c := indextest.Random(seed)
		s, oracle := openShard(t, buildShard(t, c)), indextest.NewOracle(c)
		for _, q := range indextest.Queries(c, seed, 60) {
			tree, err := query.Parse(q.Text, query.ParseOptions{SyntaxVersion: query.MaxSyntaxVersion})
			if err == nil {
				tree, err = oracle.Resolve(tree)
			}
			if err != nil {
				t.Fatal(err)
			}
			found, err := oracle.Eval(tree)
			if err != nil {
				continue
			}
			ready, err := search.Prepare(tree)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Count(context.Background(), ready, search.Options{}, allFacets)
			if err != nil || got.Incomplete != nil {
				t.Fatal(err, got)
			}
			want := countedByOracle(c, found)
			for i, by := range allFacets {
				if got := got.Facets[i].Values(); !slices.Equal(got, want[i].Values()) || want[i].NotCounted > 0 {
					t.Fatalf("corpus %s, %s by %d:\n got %v\nwant %v", c.Name, q.Text, by, got, want[i].Values())
				}
			}
		}
	}
}

func countedByOracle(c *indextest.Corpus, found []indextest.Result) []search.FacetCounts {
	documents := map[string]indextest.Document{}
	for _, r := range c.Repos {
		for _, d := range r.Documents {
			for _, branch := range d.Branches {
				documents[fmt.Sprint(r.Name, d.Path, branch)] = d
			}
		}
	}
	counts := make([]search.FacetCounts, len(allFacets))
	for _, r := range found {
		d := documents[fmt.Sprint(r.Repo, r.Path, r.Branches[0])]
		for i, by := range allFacets {
			switch by {
			case search.ByRepo:
				counts[i].Add(search.FacetValue{Repo: r.Repo}, 1)
			case search.ByLanguage:
				counts[i].Add(search.FacetValue{Name: d.Language}, 1)
			case search.ByFolder:
				counts[i].Add(search.FacetValue{Repo: r.Repo, Name: r.Path[:strings.LastIndexByte(r.Path, '/')+1]}, 1)
			case search.ByBranch:
				for _, b := range r.Branches {
					counts[i].Add(search.FacetValue{Name: b}, 1)
				}
			}
		}
	}
	return counts
}

// TestFacetCountsAreBounded adds more values than are counted apart and checks that no document is
// lost.
func TestFacetCountsAreBounded(t *testing.T) {
	var c, d search.FacetCounts
	for i := range 12_000 {
		c.Add(search.FacetValue{Name: fmt.Sprint(i)}, 2)
		d.Add(search.FacetValue{Name: strings.Repeat("x", 100) + fmt.Sprint(i)}, 3)
	}
	if n := len(c.Values()); n != 10_000 || c.NotCounted != 4_000 {
		t.Errorf("%d values, %d documents not counted", n, c.NotCounted)
	}
	d.Merge(&c)
	sum := d.NotCounted
	for _, v := range d.Values() {
		sum += v.Documents
	}
	if sum != 12_000*5 || len(d.Values()) > 2_700 {
		t.Errorf("%d documents of %d in %d values", sum, 12_000*5, len(d.Values()))
	}
}
