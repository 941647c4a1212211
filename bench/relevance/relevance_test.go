package relevance

import (
	"strings"
	"testing"
)

// TestAhead: each kind counts beside the better one of zoekt's orders, by the half that nobody tuned on.
func TestAhead(t *testing.T) {
	var queries []known
	engines := []*engine{{name: "trawl"}, {name: "zoekt, default"}, {name: "zoekt, BM25"}}
	for i, k := range kinds {
		for _, tuning := range []bool{false, true} {
			queries = append(queries, known{kind: k, tuning: tuning})
			ranks := []int{1, 4, 2}
			if i == 0 {
				ranks = []int{2, 1, 0}
			}
			if tuning {
				ranks = []int{0, 1, 1}
			}
			for n, e := range engines {
				e.ranks = append(e.ranks, ranks[n])
			}
		}
	}
	got := ahead(queries, engines)
	if len(got) != len(kinds) {
		t.Fatalf("%d figures of %d kinds", len(got), len(kinds))
	}
	for i, f := range got {
		if !strings.Contains(f.What, string(kinds[i])) || f.Measured != map[bool]float64{true: -.5, false: .5}[i == 0] || f.Missed() != (i == 0) {
			t.Errorf("%+v", f)
		}
	}
	if alone := ahead(queries, engines[:1]); alone != nil {
		t.Errorf("without zoekt: %+v", alone)
	}
}
