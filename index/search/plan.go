package search

import (
	"cmp"
	"slices"

	"github.com/trawl-search/trawl/index/regex"
)

// contentPlan narrows down the blobs that may hold what is needed.
type contentPlan struct {
	blobs    blobs // nil if every blob may
	estimate uint64
	// anchors are literals such that every match holds one of them; nil if none are known.
	anchors []*literalBlobs
	// leads are the methods that led to the blobs.
	leads []string
}

func (s *search) contentPlan(n regex.Needs) (contentPlan, error) {
	p, _, err := regex.Fold(n, func(l regex.Literal) (contentPlan, bool, error) {
		p, err := s.contentPlaces(l)
		if err != nil || p == nil {
			return contentPlan{}, false, err
		}
		b, lead := newLiteralBlobs(s, l, p), ByWordsAndText
		if p.byNgrams {
			lead = ByNgramsAndText
		}
		return contentPlan{b, uint64(len(p.tallies)), []*literalBlobs{b}, []string{lead}}, true, nil
	}, allOfPlans, anyOfPlans)
	return p, err
}

// allOfPlans plans for several needs. The anchors are those of the part with the fewest
// candidates.
func allOfPlans(parts []contentPlan) contentPlan {
	slices.SortStableFunc(parts, func(a, b contentPlan) int { return cmp.Compare(a.estimate, b.estimate) })
	var all allOf
	var leads []string
	for _, p := range parts {
		all, leads = append(all, p.blobs), append(leads, p.leads...)
	}
	parts[0].blobs, parts[0].leads = all, leads
	return parts[0]
}

func anyOfPlans(parts []contentPlan) (joined contentPlan) {
	var some []blobs
	for _, p := range parts {
		some = append(some, p.blobs)
		joined.estimate += p.estimate
		joined.anchors = append(joined.anchors, p.anchors...)
		joined.leads = append(joined.leads, p.leads...)
	}
	joined.blobs = newAnyOf(some...)
	return joined
}
