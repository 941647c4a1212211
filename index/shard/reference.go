package shard

import (
	"github.com/trawl-search/trawl/index/rank"
)

// referenceAtom finds a text outside of the names of symbols, where the index of words knows in
// which blobs a match is in such a name. In those the text decides; in all others every match
// counts, and words alone answer.
type referenceAtom struct {
	words    *wordAtom
	text     *contentAtom
	defining []uint32 // ascending
}

// referenceAtom makes what finds a text outside of names ready.
func (s *search) referenceAtom(p *Query, m *matching) (node, error) {
	text := &contentAtom{s: s, matcher: m.matcher, needs: m.needs, reach: m.reach, most: m.most, outside: true}
	if s.words == nil || !m.withinWords || !s.words.Marked() {
		s.textAtoms++
		plan, err := s.contentPlan(m.needs)
		text.planned = plan.plan
		return &atomNode{content: text}, err
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
	if p.alone {
		s.wordAtoms = append(s.wordAtoms, words)
	} else {
		s.textAtoms++ // what overlaps ranges of others is known of the text only
	}
	text.planned, _ = words.plan()
	return &atomNode{content: &referenceAtom{words, text, defining}}, nil
}

// in returns what decides a document.
func (a *referenceAtom) in(d *document) contentNode {
	if holds(a.defining, d.blob) {
		return a.text
	}
	return a.words
}

func (a *referenceAtom) plan() (plan, error) { return a.words.plan() }

func (a *referenceAtom) cost() uint64 { return a.text.cost() }

func (a *referenceAtom) matches(d *document) (bool, error) { return a.in(d).matches(d) }

func (a *referenceAtom) gather(d *document, g *gathered) (rank.Counts, error) {
	return a.in(d).gather(d, g)
}

// inName reports whether a match overlaps the name of a symbol. Matches ascend.
func (a *contentAtom) inName(m span) bool {
	for len(a.names) > 0 && a.names[0].End <= m.start {
		a.names = a.names[1:]
	}
	return len(a.names) > 0 && a.names[0].Start < m.end
}
