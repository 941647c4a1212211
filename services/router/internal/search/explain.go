package search

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// explainer explains a query: it adds up what searchers tell, and takes the time of the
// router's own phases. A nil explainer does nothing. It is for one goroutine.
type explainer struct {
	explanation *searchv1.Explanation
	since       time.Time
}

// newExplainer begins with the first phase.
func newExplainer(o *searchv1.SearchOptions) *explainer {
	if !o.Explain {
		return nil
	}
	return &explainer{explanation: &searchv1.Explanation{}, since: time.Now()}
}

// ends says that a phase has ended.
func (e *explainer) ends(phase string) {
	if e == nil {
		return
	}
	now := time.Now()
	e.explanation.RouterPhases = append(e.explanation.RouterPhases, searchapi.ExplainedPhase(phase, now.Sub(e.since)))
	e.since = now
}

// add takes what a searcher told.
func (e *explainer) add(f *found) {
	if e == nil {
		return
	}
	searchapi.AddExplanation(e.explanation, f.explanation)
	searchapi.AddExplainedCall(e.explanation, &searchv1.ExplainedCall{
		Searcher: f.searcher, Shards: f.shards, Time: durationpb.New(f.took), Searching: f.statistics.GetDuration(),
	})
}

// explained is the explanation, with as many nodes as a part of maxBytes has room for. How
// long one searcher took depends on all repos of its shards, as what it read does.
func (e *explainer) explained(layout *Layout, maxBytes int) *searchv1.Explanation {
	if e == nil {
		return nil
	}
	if layout.Partial {
		e.explanation.SlowestCalls = nil
	}
	return searchapi.TrimExplanation(e.explanation, maxBytes/4)
}
