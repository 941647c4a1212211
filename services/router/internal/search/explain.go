package search

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// explainer explains a query: it adds up the explanations of searchers and times the
// phases of the router. A nil explainer does nothing. It is for one goroutine.
type explainer struct {
	explanation *searchv1.Explanation
	since       time.Time
}

// newExplainer starts the first phase.
func newExplainer(o *searchv1.SearchOptions) *explainer {
	if !o.Explain {
		return nil
	}
	return &explainer{explanation: &searchv1.Explanation{}, since: time.Now()}
}

// ends records the end of a phase, and starts the next.
func (e *explainer) ends(phase string) {
	if e == nil {
		return
	}
	now := time.Now()
	e.explanation.RouterPhases = append(e.explanation.RouterPhases, searchapi.ExplainedPhase(phase, now.Sub(e.since)))
	e.since = now
}

// add adds the explanation of one call.
func (e *explainer) add(r *searchReply) {
	if e == nil {
		return
	}
	searchapi.AddExplanation(e.explanation, r.explanation)
	call := &searchv1.ExplainedCall{Searcher: r.searcher, Shards: r.shards, Time: durationpb.New(r.took), Searching: r.statistics.GetDuration()}
	searchapi.AddExplanation(e.explanation, &searchv1.Explanation{Calls: 1, SlowestCalls: []*searchv1.ExplainedCall{call}})
}

// explained is the explanation, trimmed to a quarter of maxBytes. It hides the slowest
// calls if the caller sees only part of a shard: their time depends on hidden repos too.
func (e *explainer) explained(layout *Layout, maxBytes int) *searchv1.Explanation {
	if e == nil {
		return nil
	}
	if layout.Partial {
		e.explanation.SlowestCalls = nil
	}
	return searchapi.TrimExplanation(e.explanation, maxBytes/4)
}
