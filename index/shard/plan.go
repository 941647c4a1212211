package shard

import (
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/regex"
)

// contentPlan narrows the blobs that hold what is needed.
func (s *search) contentPlan(n regex.Needs) (plan, error) {
	switch n := n.(type) {
	case regex.Literal:
		cand, ok, err := s.lookup(s.shardText, n)
		if err != nil || !ok {
			return plan{}, err
		}
		return plan{blobs: &literalBlobs{content: s.content, cand: cand}, estimate: cand.Cost()}, nil
	case regex.And:
		return s.contentAll(n.Children)
	case regex.Or:
		return s.contentAny(n.Children)
	}
	return plan{}, nil
}

func (s *search) contentAll(children []regex.Needs) (plan, error) {
	all, best := allOf(nil), uint64(0)
	for _, c := range children {
		p, err := s.contentPlan(c)
		if err != nil {
			return plan{}, err
		}
		if !p.narrow() {
			continue
		}
		if len(all) == 0 || p.estimate < best {
			best, all = p.estimate, append(allOf{p.blobs}, all...)
		} else {
			all = append(all, p.blobs)
		}
	}
	if len(all) == 0 {
		return plan{}, nil
	}
	return plan{blobs: all, estimate: best}, nil
}

func (s *search) contentAny(children []regex.Needs) (plan, error) {
	var some anyOf
	var sum uint64
	for _, c := range children {
		p, err := s.contentPlan(c)
		if err != nil || !p.narrow() {
			return plan{}, err
		}
		some, sum = append(some, p.blobs), sum+p.estimate
	}
	return plan{blobs: some, estimate: sum}, nil
}

// lookup finds the candidate blocks of a literal; ok is false when it is too
// short to have an n-gram.
func (s *search) lookup(x *postings.Index, l regex.Literal) (cand *postings.Candidates, ok bool, err error) {
	windows := ngram.LiteralWindows(l.Text, l.CaseSensitive)
	if len(windows) == 0 {
		return nil, false, nil
	}
	if cand, err = x.Literal(windows); err != nil {
		return nil, false, err
	}
	s.stats.ListsRead += uint64(cand.Lists())
	return cand, true, nil
}
