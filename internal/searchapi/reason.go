package searchapi

import (
	"strings"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// ReasonName is the label of a reason in metrics and traces.
func ReasonName(r searchv1.UncoveredReason) string {
	return strings.ToLower(strings.TrimPrefix(r.String(), "UNCOVERED_REASON_"))
}

// ReasonNames are the labels of all reasons.
func ReasonNames() (names []string) {
	for n := range searchv1.UncoveredReason_name {
		if r := searchv1.UncoveredReason(n); r != searchv1.UncoveredReason_UNCOVERED_REASON_UNSPECIFIED {
			names = append(names, ReasonName(r))
		}
	}
	return names
}

// ReasonText says to people why shards are not covered.
func ReasonText(r searchv1.UncoveredReason) string {
	switch r {
	case searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED:
		return "not loaded yet"
	case searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE:
		return "the time was over"
	case searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT:
		return "damaged, being fetched again"
	case searchv1.UncoveredReason_UNCOVERED_REASON_UNREACHABLE:
		return "the searcher cannot be reached"
	case searchv1.UncoveredReason_UNCOVERED_REASON_NO_SEARCHER:
		return "there is no searcher"
	}
	return "an error"
}
