package relevance

import (
	"bytes"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/bench/corpus"
)

// TestCases: those of repos that are not there are left out, and named; the others have their ranks.
func TestCases(t *testing.T) {
	cases := casesIn(corpus.Corpus{Repos: []corpus.Repo{{Name: zoektRepo}, {Name: concRepo}}})
	if len(cases) != 2 || cases[0].query != "zoekt searcher" || cases[1].query != "WaitGroup" {
		t.Fatalf("%v", cases)
	}
	var text bytes.Buffer
	writeCases(&text, cases, []*engine{{name: "trawl", ranks: []int{1, 0}}})
	var got []string
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "left out: ") {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
	}
	want := "/rank of the target trawl zoekt's record/zoekt searcher 1 1/WaitGroup 0 1/mean reciprocal rank 0.500 1.000/first, percent 50 100/among the first 5 50 100"
	if strings.Join(got, "/") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "/"), want)
	}
	if n := strings.Count(text.String(), "left out: "); n != len(zoektCases)-2 {
		t.Errorf("%d are left out", n)
	}
}

// TestZoektsRecord is what rank_stats.txt beside zoekt's test says of its 16 cases.
func TestZoektsRecord(t *testing.T) {
	var ranks []int
	for _, c := range zoektCases {
		ranks = append(ranks, c.recorded)
	}
	if m := measure(ranks); len(ranks) != 16 || m.mrr < .632036 || m.mrr > .632038 || m.first[0] != 56.25 || m.first[1] != 68.75 {
		t.Errorf("%d cases: %+v", len(ranks), m)
	}
}
