package search

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/index/query"
)

// compile makes a tree ready for this shard; see node. Properties of the shard alone, such as a
// repo's name, become constants.
func (s *search) compile(q query.Q) (node, error) {
	switch q := q.(type) {
	case *query.Const:
		return constNode(q.Value), nil
	case *query.And:
		return s.and(q.Children)
	case *query.Or:
		return s.or(q.Children)
	case *query.Not:
		names, defining := len(s.nameAtoms), len(s.defining)
		child, err := s.node(q.Child)
		s.nameAtoms, s.defining = s.nameAtoms[:names], s.defining[:defining] // the child's ranges are not shown
		if c, ok := child.(constNode); ok {
			return !c, err
		}
		return &notNode{s, child}, err
	case *query.Type:
		child, err := s.node(q.Child)
		if q.Kind == query.KindFileName {
			return &fileNameNode{child}, err
		}
		return child, err
	case *query.Substring, *query.Regexp:
		return s.atom(s.query.texts[q])
	case *query.Symbol:
		return s.symbolAtom(q, s.query.texts[q])
	case *query.Reference:
		return s.referenceAtom(s.query.texts[q])
	case *query.Branch:
		return &branchNode{q: q}, nil
	case *query.Language:
		id, ok, err := s.docs.FindLanguage(q.Name)
		if err != nil || !ok {
			return constNode(false), err
		}
		return &languageNode{s.docs, id}, nil
	case *query.Repo, *query.Meta, *query.RepoSet, *query.RepoFact:
		return s.repoAtom(q)
	}
	return nil, fmt.Errorf("query node %T cannot be evaluated in a shard", q)
}

// and first prepares the parts that repos, columns and paths decide. If they exclude the whole
// shard, no posting list of the content is touched. Otherwise the words are looked up in the
// documents that are left.
func (s *search) and(qs []query.Q) (node, error) {
	parts := make([]part, len(qs)) // what is cheap to decide first
	for i, q := range qs {
		parts[i] = part{q: q, kind: s.kindOf(q), blocks: contentBlocks}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.kind, b.kind) })
	outer := s.among
	defer func() { s.among = outer }()
	all := &andNode{s: s}
	for i := range parts {
		if parts[i].kind >= byWords && (i == 0 || parts[i-1].kind < byWords) {
			if none, err := s.filterParts(all, parts[i:]); err != nil || none {
				return constNode(false), err
			}
		}
		part := parts[i]
		n, err := s.node(part.q)
		if err != nil || n == constNode(false) {
			return n, err
		}
		all.add(n)
		if err := s.narrowTo(n); err != nil {
			return nil, err
		}
	}
	all.sort()
	return all, nil
}

// part is one of the parts of a query that must all match.
type part struct {
	q    query.Q
	kind partKind
	// blocks is how many blocks of the lexicon it reads.
	blocks int
}

// partKind is how a part is decided, the cheapest way first.
type partKind uint8

const (
	byColumns partKind = iota
	byPaths
	byWords
	byContent
)

// kindOf returns the most expensive way in which an atom of a part is decided. Only words that are a part of their own count as such.
func (s *search) kindOf(q query.Q) (kind partKind) {
	query.Walk(q, func(q query.Q) bool {
		switch q.(type) {
		case *query.Substring, *query.Regexp, *query.Symbol, *query.Reference:
			kind = max(kind, byPaths)
			if looksAtContent(q) {
				kind = byContent
			}
		}
		return kind < byContent
	})
	if m := s.query.texts[q]; kind == byContent && m != nil && m.withinWords && m.inNames == nil {
		return byWords
	}
	return kind
}

// filterParts finds the documents that the parts made ready so far let through. It does so before
// the words of the rest are looked up, if a few paths decide, and again once the cost of those
// words is known. It reports whether no document is left. Of the rest, the part in the fewest
// blocks of the lexicon comes first.
func (s *search) filterParts(all *andNode, rest []part) (none bool, err error) {
	if err := s.filter(all, firstBlocks); err != nil || all.filtered && len(all.filter) == 0 {
		return true, err
	}
	for i := range rest {
		if rest[i].kind != byWords {
			continue
		}
		done := s.explain.planning(rest[i].q)
		found, err := s.candidateWords(s.query.texts[rest[i].q])
		done()
		if err != nil {
			return false, err
		}
		rest[i].blocks = found.n
	}
	slices.SortStableFunc(rest, func(a, b part) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.blocks, b.blocks)) })
	if len(all.rest) > 0 {
		err = s.filter(all, rest[0].blocks)
	}
	return all.filtered && len(all.filter) == 0, err
}

// filter finds the documents that the parts made ready so far let through, if that takes less than
// finding words in that many blocks of the lexicon. All later parts are looked up in these only.
func (s *search) filter(all *andNode, blocks int) error {
	if err := all.decide(looksPerBlock * uint64(blocks)); err != nil || !all.filtered {
		return err
	}
	blobs, err := all.filterBlobs()
	if err != nil {
		return err
	}
	s.restrict(all.filter, blobs)
	return nil
}

// narrowTo restricts the lookup of the words that must match together with a node to the few blobs
// that the node can match.
func (s *search) narrowTo(n node) error {
	for w, ok := n.(*watchedNode); ok; w, ok = n.(*watchedNode) {
		n = w.node // twice if a type: has become the node of its child
	}
	a, ok := n.(*atomNode)
	if !ok || a.content == nil || a.name != nil && !a.name.candidates.narrow {
		return nil
	}
	words, ok := a.content.(*wordAtom)
	if !ok || len(words.hits.blobs) > mostAmong {
		return nil
	}
	var found runs
	for i := range words.hits.blobs {
		found = found.add(words.hits.blobs[i].blob, words.hits.blobs[i].blob+1)
	}
	if a.name != nil {
		if a.name.candidates.superblocks*pathsPerSuperblock > mostAmong {
			return nil
		}
		if _, err := a.name.enumerate(anyCost); err != nil {
			return err
		}
		named, err := a.name.matchingBlobs()
		if err != nil {
			return err
		}
		found = found.or(named)
	}
	s.restrict(nil, found)
	return nil
}

// node makes a tree ready for this shard, and has the explainer watch it.
func (s *search) node(q query.Q) (node, error) {
	defer s.explain.planning(q)()
	n, err := s.compile(q)
	return s.explain.watched(q, n), err
}

func (s *search) or(qs []query.Q) (node, error) {
	some := &orNode{}
	for _, q := range qs {
		n, err := s.node(q)
		if err != nil {
			return nil, err
		}
		if n != constNode(false) {
			some.children = append(some.children, n)
		}
	}
	if len(some.children) == 0 {
		return constNode(false), nil
	}
	return some, nil
}

// contentAtom prepares finding a text in the content: by the index of words where that knows all
// matches.
func (s *search) contentAtom(n *atomNode, m *matching, keep int) (err error) {
	if m.loose != nil && !m.withinWords && (s.among == nil || s.among.blobs.count() > mostRead) {
		hits, ok, err := s.looseHits(m)
		if err != nil {
			return err
		}
		if ok {
			n.content = &wordAtom{matching: m, s: s, hits: hits}
			return nil
		}
	}
	read := false
	if m.withinWords {
		if read, err = s.readRather(m); err != nil {
			return err
		}
	}
	if m.withinWords && !read {
		hits, err := s.wordHits(m)
		if err != nil {
			return err
		}
		n.content = &wordAtom{matching: m, s: s, hits: hits}
		return nil
	}
	a := &contentAtom{matching: m, s: s, keep: keep}
	n.content = a
	if a.verifies = read; read {
		s.knownOf(m).read = s.among
		return nil
	}
	s.reading = append(s.reading, a)
	return a.prepare()
}

// atom makes a Substring or Regexp ready.
func (s *search) atom(m *matching) (node, error) {
	n := &atomNode{loose: m.loose}
	if m.scope != query.FileName {
		keep := 0
		if len(s.query.texts) == 1 { // no other atom's ranges can overlap its own
			keep = s.mostConsidered()
		}
		if err := s.contentAtom(n, m, keep); err != nil {
			return nil, err
		}
		if a, ok := n.content.(*wordAtom); m.loose == nil && s.words.Marked() && !(ok && len(a.hits.words) == 0) {
			var err error
			if n.word, err = s.nameIn(m, false); err != nil {
				return nil, err
			}
			s.defined, s.defining = append(append(s.defined, n.word.marked...), n.word.byText...), append(s.defining, &n.word)
		}
	}
	if m.scope != query.Content {
		n.name = &nameAtom{s: s, matching: m, placed: n.content != nil}
		if s.among != nil {
			n.name.within = s.among.docs
		}
		if err := n.name.prepare(); err != nil {
			return nil, err
		}
		s.nameAtoms = append(s.nameAtoms, n.name)
	}
	if n.matchesNothing() {
		return constNode(false), nil
	}
	return n, nil
}
