package shard

import (
	"math"
	"slices"

	"github.com/trawl-search/trawl/index/rank"
)

// What may be among the best waits in a queue, ordered by its highest possible score: contents that postings know, and documents whose
// score is a bound until their text is read. The search takes the first, and scores it or puts it back with a lower bound, until nothing
// in the queue can be among the best. This is the threshold algorithm (Fagin, Lotem and Naor, Optimal aggregation algorithms for
// middleware, 2001).

// candidate is an entry of the queue.
type candidate struct {
	bound float64
	// number is the number of the document. For a blob it is the blob's: its documents have that number or a higher one.
	number uint32
	// documents is the number of documents and matches the number of matches in each, to be counted if they are not looked at.
	documents, matches int
	// The bound is the rank.Total of these parts, and the most for a repo.
	content, names float64
	spelling       int // terms that spell the file's name
	low            bool
	several        bool // several documents have the blob
	byPath         bool // names, spelling and low are those of the blob's one document
	inexact        bool // the number of matches in the documents is uncertain
	hit            *hit // a document that was already looked at; nil for a blob
}

// unknown is the bound of a blob that must be looked at.
var unknown = math.Inf(1)

func compareCandidates(a, b *candidate) int {
	return compareScored(a.bound, a.number, b.bound, b.number)
}

// mostWaiting is the most documents in the queue if the search looks at documents one by one.
const mostWaiting = 256

// wait queues a document whose score is only a bound.
func (s *search) wait(h *hit) error {
	waiting := *h
	waiting.spans, waiting.inWords, waiting.features.Terms = slices.Clone(h.spans), slices.Clone(h.inWords), slices.Clone(h.features.Terms)
	s.queue = push(s.queue, candidate{bound: h.score, number: h.doc, hit: &waiting}, compareCandidates)
	if s.bulk == nil && len(s.queue) >= mostWaiting {
		return s.settleQueue(nil)
	}
	return nil
}

// settleQueue settles the queue. It calls found for the documents of blobs that match.
func (s *search) settleQueue(found func() error) (err error) {
	if len(s.queue) == 0 {
		return nil
	}
	defer s.explain.during(PhaseScan)()
	for taken := 0; len(s.queue) > 0 && err == nil; taken++ {
		first := s.queue[0]
		if first.bound < unknown && !s.admits(first.bound, first.number) {
			break // so no later one may be either
		}
		if err = s.announceQueue(taken); err == nil {
			s.queue = dropFirst(s.queue, compareCandidates)
			err = s.settle(&first, found)
		}
	}
	for i := range s.queue {
		s.countOnly(&s.queue[i])
	}
	s.queue = s.queue[:0]
	return err
}

// settle scores a document, or looks at those of a blob. A blob is first queued again with a bound by its path, and then with one by its
// text.
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

// settleHit reads the document's text, and keeps the document if it is among the best.
func (s *search) settleHit(h *hit) error {
	if err := s.readTogether(h.blob); err != nil {
		return err
	}
	h.features.Together = s.together.atBest(h.blob)
	h.score = h.features.Score()
	s.keep(h)
	return nil
}

// total bounds the score. It assumes that the document has no terms other than those that spell its name, and that its repo has the
// highest rank, which gives the most.
func (s *search) total(c *candidate) float64 {
	return rank.Total(c.content, c.names, c.spelling, c.spelling, c.low) + s.mostOfRepo
}

// waitAgain queues a blob again. Its new bound must not be higher than the one before.
func (s *search) waitAgain(c *candidate) {
	c.bound = s.total(c)
	s.queue = push(s.queue, *c, compareCandidates)
}

// boundByText queues a blob again with a bound by how the words stand together in its text.
func (s *search) boundByText(c *candidate) error {
	c.content -= s.together.mostIn(c.number)
	if err := s.readTogether(c.number); err != nil {
		return err
	}
	c.content += s.together.mostIn(c.number)
	s.waitAgain(c)
	return nil
}

// countOnly counts the documents of a blob that cannot be among the best.
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
