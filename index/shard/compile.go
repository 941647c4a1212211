package shard

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/trawl-search/trawl/index/query"
)

// node makes a tree ready for this shard. What the shard alone decides, such as
// a repo's name, becomes a constant.
func (s *search) node(p *Query, q query.Q) (node, error) {
	switch q := q.(type) {
	case *query.Const:
		return constNode(q.Value), nil
	case *query.And:
		return s.and(p, q.Children)
	case *query.Or:
		children, err := s.nodes(p, q.Children)
		return newOr(children), err
	case *query.Not:
		names, words, texts := len(s.nameAtoms), len(s.wordAtoms), s.textAtoms
		child, err := s.node(p, q.Child)
		s.nameAtoms, s.wordAtoms, s.textAtoms = s.nameAtoms[:names], s.wordAtoms[:words], texts // its ranges are not shown
		if c, ok := child.(constNode); ok {
			return !c, err
		}
		return &notNode{child}, err
	case *query.Type:
		words, texts := len(s.wordAtoms), s.textAtoms
		child, err := s.node(p, q.Child)
		if q.Kind == query.KindFileName {
			s.wordAtoms, s.textAtoms = s.wordAtoms[:words], texts // ranges in the content are not shown
			return &fileNameNode{child}, err
		}
		return child, err
	case *query.Substring, *query.Regexp:
		return s.atom(p, p.texts[q])
	case *query.Branch:
		return &branchNode{q: q}, nil
	case *query.Language:
		id, ok, err := s.docs.FindLanguage(q.Name)
		if err != nil || !ok {
			return constNode(false), err
		}
		return languageNode(id), nil
	case *query.Repo, *query.Meta, *query.RepoSet, *query.RepoFact:
		return s.repoAtom(p, q)
	}
	return nil, fmt.Errorf("query node %T cannot be evaluated in a shard", q)
}

// and makes conditions on repos and columns ready first: when they exclude the
// whole shard, no posting list is touched.
func (s *search) and(p *Query, qs []query.Q) (node, error) {
	ordered, err := s.order(p, qs)
	if err != nil {
		return nil, err
	}
	outer := s.among
	defer func() { s.among = outer }()
	children := make([]node, 0, len(qs))
	for _, q := range ordered {
		n, err := s.node(p, q)
		if err != nil || n == constNode(false) {
			return n, err
		}
		children = append(children, n)
		if err := s.narrowTo(n); err != nil {
			return nil, err
		}
	}
	return newAnd(children), nil
}

// order puts conditions without texts first, then texts that are answered from words, those
// in the fewest blocks of the lexicon first, then the others.
func (s *search) order(p *Query, qs []query.Q) ([]query.Q, error) {
	type cost struct {
		q    query.Q
		rank uint64
	}
	costs := make([]cost, len(qs))
	for i, q := range qs {
		costs[i].q = q
		m := p.texts[q]
		switch {
		case !isText(q):
		case m == nil || m.scope == query.FileName || s.words == nil || !m.withinWords:
			costs[i].rank = math.MaxUint64
		default:
			found, err := s.candidateWords(m)
			if err != nil {
				return nil, err
			}
			costs[i].rank = 1 + uint64(found.n)
		}
	}
	slices.SortStableFunc(costs, func(a, b cost) int { return cmp.Compare(a.rank, b.rank) })
	ordered := make([]query.Q, len(qs))
	for i := range costs {
		ordered[i] = costs[i].q
	}
	return ordered, nil
}

// narrowTo has the words that must match beside a node looked up in the few blobs only
// that the node can match.
func (s *search) narrowTo(n node) error {
	a, ok := n.(*atomNode)
	if !ok || a.content == nil || a.name != nil && !a.name.candidates.narrow {
		return nil
	}
	words, ok := a.content.(*wordAtom)
	if !ok || len(words.hits.blobs) > mostAmong {
		return nil
	}
	blobs := make([]uint32, 0, len(words.hits.blobs))
	for i := range words.hits.blobs {
		blobs = append(blobs, words.hits.blobs[i].blob)
	}
	if a.name != nil {
		if a.name.candidates.superblocks*pathsPerSuperblock > mostAmong {
			return nil
		}
		if _, err := a.name.open(); err != nil {
			return err
		}
		blobs = append(blobs, a.name.blobs...)
		slices.Sort(blobs)
		blobs = slices.Compact(blobs)
	}
	if s.among == nil || len(blobs) < len(s.among.blobs) {
		s.among = &among{blobs: blobs}
	}
	return nil
}

// isText reports whether an atom of q may look at posting lists.
func isText(q query.Q) (text bool) {
	query.Walk(q, func(q query.Q) bool {
		switch q.(type) {
		case *query.Substring, *query.Regexp:
			text = true
		}
		return !text
	})
	return text
}

func (s *search) nodes(p *Query, qs []query.Q) ([]node, error) {
	nodes := make([]node, 0, len(qs))
	for _, q := range qs {
		n, err := s.node(p, q)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// contentAtom makes what finds a text in the content ready: by the index of words where
// that knows all matches.
func (s *search) contentAtom(n *atomNode, m *matching, keep int) error {
	read := false
	if s.words != nil && m.withinWords {
		var err error
		if read, err = s.readRather(m); err != nil {
			return err
		}
	}
	if s.words != nil && m.withinWords && !read {
		hits, err := s.wordHits(m)
		if err != nil {
			return err
		}
		a := &wordAtom{matching: m, s: s, hits: hits, keep: keep}
		n.content = a
		s.wordAtoms = append(s.wordAtoms, a)
		return nil
	}
	a := &contentAtom{s: s, matcher: m.matcher, needs: m.needs, reach: m.reach, maybeEmpty: m.maybeEmpty, most: m.most, keep: keep}
	n.content = a
	s.textAtoms++
	if a.verifies = read; read {
		return nil
	}
	return a.prepare()
}

// atom makes a Substring or Regexp ready.
func (s *search) atom(p *Query, m *matching) (node, error) {
	n := &atomNode{}
	if m.scope != query.FileName {
		keep := 0
		if len(p.texts) == 1 { // no other atom's ranges can overlap its own
			keep = max(1, s.opts.MaxMatchesPerFile)
		}
		if err := s.contentAtom(n, m, keep); err != nil {
			return nil, err
		}
	}
	if m.scope != query.Content {
		n.name = &nameAtom{s: s, matcher: m.matcher, needs: m.needs}
		if err := n.name.prepare(); err != nil {
			return nil, err
		}
		s.nameAtoms = append(s.nameAtoms, n.name)
	}
	return n, nil
}
