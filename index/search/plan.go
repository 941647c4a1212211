package search

import (
	"github.com/trawl-search/trawl/index/regex"
)

// contentPlan narrows down the blobs that may hold what is needed.
type contentPlan struct {
	plan
	// anchors are literals such that every match holds one of them; nil if none are known.
	anchors []*literalBlobs
}

func (s *search) contentPlan(n regex.Needs) (contentPlan, error) {
	switch n := n.(type) {
	case regex.Literal:
		cand, ok, err := s.contentPlaces(n)
		if err != nil || !ok {
			return contentPlan{}, err
		}
		l := newLiteralBlobs(s, n, cand)
		return contentPlan{plan{blobs: l, estimate: cand.Cost()}, []*literalBlobs{l}}, nil
	case regex.And:
		return s.contentAll(n.Children)
	case regex.Or:
		return s.contentAny(n.Children)
	}
	return contentPlan{}, nil
}

// contentAll plans for several needs. The anchors are those of the part with the fewest
// candidates.
func (s *search) contentAll(children []regex.Needs) (contentPlan, error) {
	var all allOf
	var best contentPlan
	for _, c := range children {
		p, err := s.contentPlan(c)
		if err != nil {
			return contentPlan{}, err
		}
		if !p.narrow() {
			continue
		}
		if len(all) == 0 || p.estimate < best.estimate {
			best, all = p, append(allOf{p.blobs}, all...)
		} else {
			all = append(all, p.blobs)
		}
	}
	if len(all) > 0 {
		best.blobs = all
	}
	return best, nil
}

func (s *search) contentAny(children []regex.Needs) (contentPlan, error) {
	var some []blobs
	var joined contentPlan
	for _, c := range children {
		p, err := s.contentPlan(c)
		if err != nil || !p.narrow() {
			return contentPlan{}, err
		}
		some = append(some, p.blobs)
		joined.estimate += p.estimate
		joined.anchors = append(joined.anchors, p.anchors...)
	}
	joined.blobs = newAnyOf(some...)
	return joined, nil
}
