package search

import (
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestDefinitionsFromSayWhatIsMissing: an answer of several lookups is complete if all of them are.
func TestDefinitionsFromSayWhatIsMissing(t *testing.T) {
	part := &searchv1.Coverage{Requested: 2, Searched: 1, Failed: 1}
	whole := &searchv1.Coverage{Complete: true, Requested: 2, Searched: 2}
	for _, covered := range [][]*searchv1.Coverage{{whole, part, whole}, {part, whole}, {whole, whole, part}} {
		l := &lookups{resp: &searchv1.DefinitionsResponse{}}
		for _, c := range covered {
			l.add(&searchv1.SearchResponse{Coverage: c, Statistics: &searchv1.Statistics{}}, false)
		}
		if l.resp.Coverage != part {
			t.Errorf("lookups with %v are covered as %v", covered, l.resp.Coverage)
		}
	}
}
