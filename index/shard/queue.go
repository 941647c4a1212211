package shard

import (
	"math"
	"slices"

	"github.com/trawl-search/trawl/index/rank"
)

// What may be among the best waits in the order of the most that it may score: contents that postings know, and documents
// whose score is a bound until text is read. The first is looked at, scored or put back with a lower bound, until none that waits can be
// among the best: the threshold algorithm (Fagin, Lotem and Naor, Optimal aggregation algorithms for middleware, 2001).

// candidate is what waits.
type candidate struct {
	bound float64
	// number is that of the document, or of the blob, whose documents have its number or a higher one.
	number uint32
	// documents match that many times each, which is counted if they are not looked at.
	documents, matches int
	// The bound is the rank.Total of these parts.
	content, names float64
	spelling       int // terms that spell the file's name
	low            bool
	several        bool // documents have the blob
	byPath         bool // names, spelling and low are those of its one document
	inexact        bool // it is not known for sure how often the documents match
	hit            *hit // a document that was looked at; nil for a blob
}

// unknown is the bound of a blob that is looked at in any case.
var unknown = math.Inf(1)

func compareCandidates(a, b *candidate) int {
	return compareScored(a.bound, a.number, b.bound, b.number)
}

// mostWaiting is how many documents wait for others to be better where documents are looked at one after the other.
const mostWaiting = 256

// wait has a document wait whose score is a bound.
func (s *search) wait(h *hit) error {
	waiting := *h
	waiting.spans, waiting.inWords, waiting.features.Terms = slices.Clone(h.spans), slices.Clone(h.inWords), slices.Clone(h.features.Terms)
	s.queue = push(s.queue, candidate{bound: h.score, number: h.doc, hit: &waiting}, compareCandidates)
	if s.bulk == nil && len(s.queue) >= mostWaiting {
		return s.settleQueue(nil)
	}
	return nil
}

// settleQueue looks at what waits, and calls found for the documents of blobs that match.
func (s *search) settleQueue(found func() error) (err error) {
	if len(s.queue) == 0 {
		return nil
	}
	defer s.explain.during(PhaseScan)()
	for len(s.queue) > 0 && err == nil {
		first := s.queue[0]
		if first.bound < unknown && !s.admits(first.bound, first.number) {
			break // and so is none of the others
		}
		s.queue = dropFirst(s.queue, compareCandidates)
		err = s.settle(&first, found)
	}
	for i := range s.queue {
		s.countOnly(&s.queue[i])
	}
	s.queue = s.queue[:0]
	return err
}

// settle scores a document, or looks at those of a blob. Before, the blob waits again for what a path says, and then what text says.
func (s *search) settle(c *candidate, found func() error) error {
	if err := s.tick(); err != nil {
		return err
	}
	switch {
	case c.hit != nil:
		return s.settleHit(c.hit)
	case c.bound == unknown:
	case !c.several && !c.byPath:
		return s.boundByPath(c)
	case c.byPath && !s.together.known(c.number):
		return s.boundByText(c)
	}
	return s.eachOf(c.number, found)
}

// settleHit keeps a document if it is among the best by its text.
func (s *search) settleHit(h *hit) error {
	if err := s.readTogether(h.blob); err != nil {
		return err
	}
	h.features.Together = s.together.atBest(h.blob)
	h.score = h.features.Score()
	s.keep(h)
	return nil
}

// total takes it that a document has no other terms than those that spell its name, which is the most.
func (s *search) total(c *candidate) float64 {
	return rank.Total(c.content, c.names, c.spelling, c.spelling, c.low)
}

// waitAgain has a blob wait with a bound that is not above that before.
func (s *search) waitAgain(c *candidate) {
	c.bound = s.total(c)
	s.queue = push(s.queue, *c, compareCandidates)
}

// boundByText has a blob wait again for how the words stand together in its text.
func (s *search) boundByText(c *candidate) error {
	c.content -= s.together.mostIn(c.number)
	if err := s.readTogether(c.number); err != nil {
		return err
	}
	c.content += s.together.mostIn(c.number)
	s.waitAgain(c)
	return nil
}

// countOnly counts the documents of a blob that are not among the best.
func (s *search) countOnly(c *candidate) {
	s.leaveOut()
	s.stats.FilesMatched += uint64(c.documents)
	s.stats.Matches += uint64(c.documents * c.matches)
	if c.inexact {
		s.stats.CountsInexact = true
		s.explain.leftOutBelow(c.bound, c.number)
	}
}

// keep keeps a hit if it is among the best.
func (s *search) keep(h *hit) {
	if s.admits(h.score, h.doc) {
		s.best.add(*h)
	} else {
		s.leaveOut()
	}
}
