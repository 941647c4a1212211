package serve_test

import (
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestExplanation adds up how shards were searched and shown, those without files too. One
// that turns out to be damaged when it is shown contributes nothing.
func TestExplanation(t *testing.T) {
	s := start(t, "good", "fine", "other", "damaged-when-shown")
	plan := planOf("r", "good", "fine", "damaged-when-shown")
	plan.Shards = append(plan.Shards, planOf("s", "other").Shards...)
	ask := func(explain bool) *searchv1.Explanation {
		t.Helper()
		out := &stream{ctx: t.Context()}
		req := &searchv1.SearchRequest{Query: "q", Plan: plan, Options: &searchv1.SearchOptions{Explain: explain}}
		if err := s.StreamSearch(&searchv1.StreamSearchRequest{Search: req}, out); err != nil {
			t.Fatal(err)
		}
		return out.sent[len(out.sent)-1].Explanation
	}
	if e := ask(true); e.GetShards() != 3 || e.Candidates != 3 || e.Other.UnitsDecoded != 2 {
		t.Errorf("the explanation is %v", e)
	}
	if e := ask(false); e != nil {
		t.Errorf("explained without being asked: %v", e)
	}
}
