package indextest

import (
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/query"
)

// oraclePager is a correct pager.
func oraclePager(c *Corpus, change func(ask Ask, p *Page)) Pager {
	return Pager{"oracle", func(q query.Q, ask Ask) (Page, error) {
		results, err := Eval(c, q)
		slices.SortFunc(results, compareRanked)
		p := pageOf(results, ask)
		for i := range p.Files { // the last ranges are as good as any
			all := p.Files[i].Content
			p.Files[i].Content = all[max(len(all)-ask.MaxMatches, 0):]
		}
		if change != nil {
			change(ask, &p)
		}
		return p, err
	}}
}

func TestCheckPagesAcceptsTheOracle(t *testing.T) {
	for seed := range uint64(4) {
		c := Words(seed)
		CheckPages(t, c, Queries(c, seed, len(kinds)), oraclePager(c, nil))
	}
	lower := func(ask Ask, p *Page) {
		if ask.TopK {
			p.FilesMatched, p.Matches, p.Inexact = 0, 0, true
		}
	}
	CheckPages(t, small, Queries(small, 1, len(kinds)), oraclePager(small, lower))
}

func TestShows(t *testing.T) {
	all := []Range{{0, 3}, {5, 9}, {10, 14}}
	short := append([]Range{{0, 1}}, all[1:]...)
	for _, c := range []struct {
		all, shown []Range
		most       int
		want       bool
	}{
		{all, all, 3, true}, {all, all, 9, true}, {all, all[:2], 2, true}, {all, all[1:], 2, true}, {all, []Range{all[0], all[2]}, 2, true}, {nil, nil, 0, true},
		{all, nil, 0, true}, {all, all[:2], 3, false}, {all, all, 2, false}, {all, all[:1], 2, false}, {all, []Range{all[1], all[0]}, 2, false},
		{all, []Range{{0, 2}, all[1]}, 2, false}, {short, short[1:2], 2, true}, {short, short[1:], 3, false},
	} {
		if got := Shows(c.all, c.shown, c.most); got != c.want {
			t.Errorf("%v of %v, up to %d: %t", c.shown, c.all, c.most, got)
		}
	}
}

func TestComparePagesSeesEveryDifference(t *testing.T) {
	broken := map[string]struct {
		change func(ask Ask, p *Page)
		want   string
	}{
		"a file less":      {func(_ Ask, p *Page) { p.Files = p.Files[:1] }, "missing"},
		"a file more":      {func(_ Ask, p *Page) { p.Files = append(p.Files, PageFile{}) }, "too much"},
		"another order":    {func(_ Ask, p *Page) { slices.Reverse(p.Files) }, "file 0"},
		"another score":    {func(_ Ask, p *Page) { p.Files[0].Score++ }, "score"},
		"another object":   {func(_ Ask, p *Page) { p.Files[0].Object = nil }, "object"},
		"a match less":     {func(_ Ask, p *Page) { p.Files[0].Matches-- }, "matches"},
		"a range less":     {func(_ Ask, p *Page) { p.Files[0].Name = nil }, "file 0"},
		"a file uncounted": {func(_ Ask, p *Page) { p.FilesMatched-- }, "counts 2 files"},
		"a match counted":  {func(_ Ask, p *Page) { p.Matches++ }, "counts 3 files"},
		"a false bound":    {func(_ Ask, p *Page) { p.Inexact = true }, "inexact: true"},
	}
	for what, b := range broken {
		_, diff := NewOracle(small).ComparePages(Query{Text: "foo"}, 0, oraclePager(small, b.change))
		if !strings.Contains(diff, b.want) {
			t.Errorf("%s: got %q, want it to say %q", what, diff, b.want)
		}
	}
	topK := func(ask Ask, p *Page) {
		if ask.TopK {
			p.Matches = 0
		}
	}
	if _, diff := NewOracle(small).ComparePages(Query{Text: "foo"}, 20, oraclePager(small, topK)); !strings.Contains(diff, "counts") {
		t.Errorf("fewer matches that are no bound: got %q", diff)
	}
	failing := Pager{"failing", func(query.Q, Ask) (Page, error) { return Page{}, query.ErrUnresolved }}
	if _, diff := NewOracle(small).ComparePages(Query{Text: "foo"}, 0, failing); !strings.Contains(diff, "engine's error") {
		t.Errorf("an error: got %q", diff)
	}
}
