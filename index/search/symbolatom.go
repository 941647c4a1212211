package search

import (
	"regexp/syntax"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/index/symbols"
)

// symbolMatching says how to find a text in the names of symbols. The matcher sees only a name: ^
// and $ are its ends. A text of the content leads to candidates. Names never begin or end within a
// word, so \b holds at an end that is a word byte.
func symbolMatching(q *query.Symbol, memory *regex.Memory) (*matching, error) {
	m, err := newMatching(q.Child, memory)
	if err != nil {
		return nil, err
	}
	m.inNames, m.scope = m, query.Content
	child, ok := q.Child.(*query.Regexp)
	if !ok {
		return m, nil
	}
	around := &query.Regexp{Tree: atBoundaries(child.Tree), CaseSensitive: child.CaseSensitive}
	inText, err := newMatching(around, memory)
	if err != nil {
		return nil, err
	}
	inText.inNames, inText.scope = m, query.Content
	return inText, nil
}

// atBoundaries replaces the assertions for ends of lines and texts by \b.
func atBoundaries(tree *syntax.Regexp) *syntax.Regexp {
	changed := *tree
	switch tree.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return &syntax.Regexp{Op: syntax.OpWordBoundary, Flags: tree.Flags &^ syntax.WasDollar}
	}
	changed.Sub = make([]*syntax.Regexp, len(tree.Sub))
	for i, sub := range tree.Sub {
		changed.Sub[i] = atBoundaries(sub)
	}
	return &changed
}

// symbolAtom prepares finding a text in the names of symbols. If there are marks, candidates are
// the blobs that mark, as defined, a word that contains the text.
func (s *search) symbolAtom(q *query.Symbol, m *matching) (node, error) {
	a := &contentAtom{matching: m.inNames, s: s, kinds: q.Kinds}
	if !m.withinWords || !s.words.Marked() {
		return &atomNode{content: a}, a.lookUp(m.needs)
	}
	found, err := s.definingBlobs(m)
	s.reading = append(s.reading, a)
	a.read(ready(&blobRuns{rest: runsOf(found)}, uint64(len(found))))
	return &atomNode{content: a}, err
}

// definingBlobs returns the blobs that may have a symbol whose name an expression matches: by the
// marks, by the text where superblocks are opaque, and all blobs whose marks do not fit all of
// their documents.
func (s *search) definingBlobs(m *matching) ([]uint32, error) {
	known := s.knownOf(m)
	if known.defining != nil {
		return known.defining, nil
	}
	words, err := s.matchingWords(m)
	if err != nil {
		return nil, err
	}
	tallies, err := s.tallies(words, definitionsOnly, nil)
	if err != nil {
		return nil, err
	}
	opaque, err := s.opaqueTallies(m)
	if err != nil {
		return nil, err
	}
	found, err := s.blobsOfTallies(mergeTallies(tallies, opaque))
	if err != nil {
		return nil, err
	}
	other, err := s.shard.OtherwiseMarked(s.tick)
	if err != nil {
		return nil, err
	}
	known.defining = union([][]uint32{found, other})
	return known.defining, nil
}

// symbolsOf returns the symbols of a document. They are valid until the next call for another
// document.
func (s *search) symbolsOf(rules *symbols.Language, blob uint32, text []byte) []symbols.Symbol {
	known := &s.symbols
	if !known.valid || known.blob != blob || known.rules != rules {
		known.found = rules.Append(known.found[:0], text)
		known.valid, known.blob, known.rules = true, blob, rules
	}
	return known.found
}

// knownSymbols are the symbols of the last document.
type knownSymbols struct {
	valid bool
	blob  uint32
	rules *symbols.Language
	found []symbols.Symbol
}

// rulesOf returns the rules for a document.
func (s *search) rulesOf(doc uint32) (*symbols.Language, error) {
	language, err := s.docs.Language(doc)
	return symbols.For(language), err
}

// searchNames finds all matches in the names of a document's symbols.
func (a *contentAtom) searchNames(d *document, text []byte) error {
	for _, symbol := range a.s.symbolsOf(a.rules, d.blob, text) {
		if !a.kinds.Has(symbol.Kind) {
			continue
		}
		name := text[symbol.Start:symbol.End:symbol.End]
		rate := func(start, end int) (rank.Quality, error) {
			return rank.Of(text, int(symbol.Start)+start, int(symbol.Start)+end), nil
		}
		if _, err := a.take(name, 0, len(name), symbol.Start, rate); err != nil {
			return err
		}
		if err := a.findEmpty(name); err != nil {
			return err
		}
	}
	return nil
}

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
