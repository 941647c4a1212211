package serving_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

var everyFacet = []searchv1.Facet{searchv1.Facet_FACET_REPO, searchv1.Facet_FACET_BRANCH, searchv1.Facet_FACET_DIRECTORY, searchv1.Facet_FACET_LANGUAGE}

// TestFacetsCountAllFiles: facets count all files, on every page and even when no files are requested. The same
// holds for the repos and folders that a query selects.
func TestFacetsCountAllFiles(t *testing.T) { inOneAndInSeveral(t, testFacetsCountAllFiles) }

func testFacetsCountAllFiles(t *testing.T, oneProcess bool) {
	c := startIn(t, oneProcess, 2, 1)
	const seed = 11
	corpus := indextest.Random(seed)
	c.publishCorpus(corpus, rand.New(rand.NewPCG(seed, 1)))
	found := 0
	for _, q := range indextest.Queries(corpus, seed, 60) {
		files := c.allPages(q.Text, rand.New(rand.NewPCG(seed, 3)))
		found += len(files)
		want := countFacets(files)
		for _, options := range []*searchv1.SearchOptions{{MaxFiles: 1}, {CountOnly: true}, {CountOnly: true, Mode: searchv1.Mode_MODE_TOP_K}} {
			options.Facets, options.MaxFacetValues = everyFacet, 10_000
			resp := c.find(q.Text, options)
			if got := facetLines(resp.Facets); !slices.Equal(got, want) {
				t.Errorf("%s, %v:\n got %q\nwant %q", q.Text, options, got, want)
			}
			if s := resp.Statistics; options.CountOnly && (!s.CountsExact || s.FilesMatched != uint64(len(files)) || len(resp.Files) > 0 || resp.NextPageToken != nil) {
				t.Errorf("%s: counted only: %v, %d files", q.Text, s, len(resp.Files))
			}
		}
		streamed, last := c.stream(c.search, q.Text, &searchv1.SearchOptions{Facets: everyFacet, MaxFacetValues: 10_000})
		if got := facetLines(last.Facets); len(streamed) != len(files) || !slices.Equal(got, want) {
			t.Errorf("%s, as a stream:\n got %q\nwant %q", q.Text, got, want)
		}
		selected := c.find("select:dir ("+q.Text+" )", &searchv1.SearchOptions{SyntaxVersion: 2})
		some := slices.DeleteFunc(slices.Clone(want), func(l string) bool { return !strings.HasPrefix(l, "FACET_DIRECTORY") })
		if got := facetLines(selected.Facets); selected.Selected != searchv1.Facet_FACET_DIRECTORY || len(selected.Files) > 0 || !slices.Equal(got, some) {
			t.Errorf("%s selects the folders %q, want %q", q.Text, got, some)
		}
	}
	if found < 100 {
		t.Errorf("only %d files were found", found)
	}
}

// countFacets counts files by every facet, as facetLines writes them.
func countFacets(files []*searchv1.FileMatch) (lines []string) {
	counts := map[string]int{}
	for _, f := range files {
		counts[fmt.Sprintf("FACET_REPO %s", f.Repo)]++
		counts[fmt.Sprintf("FACET_LANGUAGE %s", f.Language)]++
		counts[fmt.Sprintf("FACET_DIRECTORY %s %q", f.Repo, f.Path[:bytes.LastIndexByte(f.Path, '/')+1])]++
		for _, b := range f.Branches {
			counts[fmt.Sprintf("FACET_BRANCH %s", b)]++
		}
	}
	for value, n := range counts {
		lines = append(lines, fmt.Sprintf("%s: %d", value, n))
	}
	slices.Sort(lines)
	return lines
}

func facetLines(counts []*searchv1.FacetCounts) (lines []string) {
	for _, c := range counts {
		for _, v := range c.Values {
			value := v.Repo + v.Name
			if c.Facet == searchv1.Facet_FACET_DIRECTORY {
				value = fmt.Sprintf("%s %q", v.Repo, v.Directory)
			}
			lines = append(lines, fmt.Sprintf("%s %s: %d", c.Facet, value, v.Files))
		}
	}
	slices.Sort(lines)
	return lines
}

// TestPagesWhileReposChange pages through an answer of more than ten thousand files in pages of random sizes, while another
// repo is published again and again. Every file of an unchanged repo appears exactly once, in order, to the last one.
func TestPagesWhileReposChange(t *testing.T) {
	c := startCluster(t, 2, 1)
	const repos, files = 3, 3600
	var want []string
	for r := range repos {
		parts := []map[string]string{{}, {}}
		for i := range files {
			path := fmt.Sprintf("d%d/f%d.go", i%17, i)
			parts[i%2][path] = strings.Repeat("needle ", 1+i%5) + fmt.Sprint(i)
			want = append(want, fmt.Sprintf("host/still%d:%s", r, path))
		}
		c.publish(fmt.Sprint("host/still", r), parts...)
	}
	c.publish("host/moving", map[string]string{"a.go": "needle 0"})
	slices.Sort(want)
	rng := rand.New(rand.NewPCG(3, 4))
	var got []*searchv1.FileMatch
	var token []byte
	revision := int64(0)
	for page := 0; page == 0 || token != nil; page++ {
		options := &searchv1.SearchOptions{MaxFiles: uint32(1 + rng.IntN(1500)), MaxMatchesPerFile: 1, RequireComplete: true}
		if page == 3 {
			options.Consistency = &searchv1.Consistency{Level: &searchv1.Consistency_Linearizable{Linearizable: true}}
		}
		resp, err := c.search.Search(c.patient(), &searchv1.SearchRequest{Query: "needle", PageToken: token, Options: options})
		c.must(err)
		if n := resp.Statistics.FilesMatched; n < repos*files {
			t.Errorf("page %d counts %d files", page, n)
		}
		got, token = append(got, resp.Files...), resp.NextPageToken
		now := c.publish("host/moving", map[string]string{"a.go": fmt.Sprint("needle ", page), fmt.Sprintf("b%d.go", page): "needle needle"})
		if now <= revision {
			t.Fatalf("revision %d after %d", now, revision)
		}
		revision = now
	}
	if !slices.IsSortedFunc(got, func(a, b *searchv1.FileMatch) int { return search.Compare(searchapi.Key(a), searchapi.Key(b)) }) {
		t.Error("the pages together are not in order")
	}
	var still []string
	for _, f := range got {
		if f.Repo != "host/moving" {
			still = append(still, f.Repo+":"+string(f.Path))
		}
	}
	slices.Sort(still)
	if !slices.Equal(still, want) {
		t.Errorf("%d files of repos that did not change, want %d, each once", len(still), len(want))
	}
	streamed, _ := c.stream(c.search, "needle -r:moving", &searchv1.SearchOptions{MaxMatchesPerFile: 1})
	if len(streamed) != 10_000 { // a stream's default limit
		t.Errorf("a stream has %d files", len(streamed))
	}
}
