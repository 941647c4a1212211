package search_test

import (
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestQueryIsExplained adds up what two searchers report, with the times of the router.
func TestQueryIsExplained(t *testing.T) {
	c := start(t, 2, func(c *cluster) {
		c.places = map[searchapi.Digest][]int{d(1): {0}, d(2): {1}}
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("a", "x", 2), file("b", "x", 2)}
		c.searchers[1].files[d(2)] = []*searchv1.FileMatch{file("a", "y", 1)}
	})
	ask := func(explain bool) *searchv1.Explanation {
		t.Helper()
		resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{Explain: explain}})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Explanation
	}
	if e := ask(false); e != nil {
		t.Errorf("explained without being asked: %v", e)
	}
	e := ask(true)
	var phases []string
	for _, p := range e.RouterPhases {
		phases = append(phases, p.Name)
	}
	if got := strings.Join(phases, ", "); got != "parse, roots, plan, fan out, merge" {
		t.Errorf("the router's phases are %s", got)
	}
	if e.Shards != 2 || e.Calls != 2 || len(e.SlowestCalls) != 2 || len(e.Nodes) != 1 || e.Nodes[0].Checked != 2 {
		t.Errorf("the explanation is %v", e)
	}
	for _, call := range e.SlowestCalls {
		if call.Shards != 1 || call.Searcher != "a" && call.Searcher != "b" || call.Time.AsDuration() <= 0 {
			t.Errorf("a call is %v", call)
		}
	}
	// In a shard that the caller sees a part of, times depend on the rest of it too.
	only := c.layout.Only(func(repo string) bool { return repo == "a" })
	c.layout = only
	if e := ask(true); !c.layout.Partial || len(e.SlowestCalls) != 0 || e.Calls != 2 {
		t.Errorf("to one who sees a part of a shard: %v", e)
	}
}
