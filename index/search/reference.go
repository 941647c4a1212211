package search

import (
	"github.com/trawl-search/trawl/index/rank"
)

// referenceAtom finds a text outside of the names of symbols, if the index of words knows the blobs
// with a match in such a name. In those blobs the text decides. In all others every match counts,
// and words alone answer.
type referenceAtom struct {
	words    *wordAtom
	text     *contentAtom
	defining []uint32 // ascending
}

// referenceAtom prepares finding a text outside of names.
func (s *search) referenceAtom(m *matching) (node, error) {
	text := &contentAtom{matching: m, s: s}
	if !m.withinWords || !s.words.Marked() {
		return &atomNode{content: text}, text.lookUp(m.needs)
	}
	hits, err := s.wordHits(m)
	if err != nil {
		return nil, err
	}
	defining, err := s.definingBlobs(m)
	if err != nil {
		return nil, err
	}
	words := &wordAtom{matching: m, s: s, hits: hits}
	text.read(ready(&wordBlobs{blobs: hits.blobs}, uint64(len(hits.blobs))))
	return &atomNode{content: &referenceAtom{words, text, defining}}, nil
}

// in returns the node that decides a document.
func (a *referenceAtom) in(d *document) contentNode {
	if holds(a.defining, d.blob) {
		return a.text
	}
	return a.words
}

func (a *referenceAtom) plan() (plan, error) { return a.text.plan() }

func (a *referenceAtom) cost() uint64 { return a.text.cost() }

func (a *referenceAtom) matches(d *document) (bool, error) { return a.in(d).matches(d) }

func (a *referenceAtom) gather(d *document, g *gathered) (rank.Counts, error) {
	return a.in(d).gather(d, g)
}

// inName reports whether a match overlaps the name of a symbol. Matches ascend from call to call.
func (a *contentAtom) inName(m span) bool {
	for len(a.names) > 0 && a.names[0].End <= m.start {
		a.names = a.names[1:]
	}
	return len(a.names) > 0 && a.names[0].Start < m.end
}
