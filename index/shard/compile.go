package shard

import (
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/index/literal"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
)

// compile makes the tree ready for this shard. What the shard alone decides,
// such as a repo's name, becomes a constant first, so that a query for another
// repo or language touches no posting list.
func (s *search) compile(q query.Q) (node, error) {
	constant, err := s.constants(q)
	if err != nil {
		return nil, err
	}
	return s.node(constant)
}

// constants replaces the atoms that are the same for all documents that may be read.
func (s *search) constants(q query.Q) (query.Q, error) {
	var failed error
	out := query.Map(q, func(q query.Q) query.Q {
		bits, ok, err := s.repoBits(q)
		if err != nil {
			failed = err
		}
		if ok {
			return s.constantBits(q, bits)
		}
		if l, ok := q.(*query.Language); ok {
			if _, ok := slices.BinarySearch(s.languages, l.Name); !ok {
				return &query.Const{Value: false}
			}
		}
		return q
	})
	return out, failed
}

// constantBits returns a constant when bits are equal for all live repos.
func (s *search) constantBits(q query.Q, bits []bool) query.Q {
	var yes, no bool
	for i, b := range bits {
		yes, no = yes || s.live[i] && b, no || s.live[i] && !b
	}
	if yes && no {
		return q
	}
	return &query.Const{Value: yes}
}

// repoBits decides an atom about repos for each repo of the shard; ok is false
// for other nodes.
func (s *search) repoBits(q query.Q) (bits []bool, ok bool, err error) {
	var decide func(i int) bool
	switch q := q.(type) {
	case *query.Repo:
		re, err := regex.Compile(q.Tree, true)
		if err != nil {
			return nil, false, fmt.Errorf("compile repo expression: %w", err)
		}
		decide = func(i int) bool { return re.MatchString(s.repos[i].Name) }
	case *query.RepoSet:
		decide = func(i int) bool { return q.Names[s.repos[i].Name] }
	case *query.Meta:
		re, err := regex.Compile(q.Tree, true)
		if err != nil {
			return nil, false, fmt.Errorf("compile meta expression: %w", err)
		}
		decide = func(i int) bool {
			v, ok := s.repos[i].Meta[q.Key]
			return ok && re.MatchString(v)
		}
	case *query.RepoFact:
		decide = func(i int) bool { return s.fact(i, q.Fact) == q.Value }
	default:
		return nil, false, nil
	}
	for i := range s.repos {
		bits = append(bits, decide(i))
	}
	return bits, true, nil
}

func (s *search) fact(repo int, f query.Fact) bool {
	switch f {
	case query.Archived:
		return s.repos[repo].Archived
	case query.Fork:
		return s.repos[repo].Fork
	}
	return s.repos[repo].Public
}

func (s *search) node(q query.Q) (node, error) {
	switch q := q.(type) {
	case *query.Const:
		return constNode(q.Value), nil
	case *query.And:
		children, err := s.nodes(q.Children)
		return newAnd(children), err
	case *query.Or:
		children, err := s.nodes(q.Children)
		return newOr(children), err
	case *query.Not:
		child, err := s.node(q.Child)
		if c, ok := child.(constNode); ok {
			return !c, err
		}
		return &notNode{child}, err
	case *query.Type:
		return s.typeNode(q)
	case *query.Substring, *query.Regexp:
		return s.atom(q)
	case *query.Branch:
		return &branchNode{q: q}, nil
	case *query.Language:
		id, _ := slices.BinarySearch(s.languages, q.Name) // constants left only those that are there
		return languageNode(id), nil
	case *query.Symbol:
		return nil, query.ErrNoSymbols
	}
	bits, ok, err := s.repoBits(q)
	if err == nil && !ok {
		err = fmt.Errorf("query node %T cannot be evaluated in a shard", q)
	}
	return repoNode(bits), err
}

func (s *search) nodes(qs []query.Q) ([]node, error) {
	nodes := make([]node, 0, len(qs))
	for _, q := range qs {
		n, err := s.node(q)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (s *search) typeNode(q *query.Type) (node, error) {
	child, err := s.node(q.Child)
	switch q.Kind {
	case query.KindFileName:
		return &fileNameNode{child}, err
	case query.KindRepo:
		return nil, fmt.Errorf("%s: %w", q, query.ErrUnresolved)
	}
	return child, err
}

// atom makes a Substring or Regexp ready.
func (s *search) atom(q query.Q) (node, error) {
	m, err := newMatching(q)
	if err != nil {
		return nil, err
	}
	n := &atomNode{}
	if m.scope != query.FileName {
		n.content = &contentAtom{s: s, matcher: m.matcher, needs: m.needs, finder: m.finder}
		if err := n.content.prepare(); err != nil {
			return nil, err
		}
	}
	if m.scope != query.Content {
		n.name = &nameAtom{s: s, matcher: m.matcher, needs: m.needs}
	}
	return n, nil
}

// matching is how the text of an atom is found.
type matching struct {
	scope   query.Scope
	matcher regex.Matcher
	needs   regex.Needs
	finder  *literal.Finder // set when the atom is a literal
}

func newMatching(q query.Q) (m matching, err error) {
	switch q := q.(type) {
	case *query.Substring:
		return literalMatching(q.Pattern, q.CaseSensitive, q.Scope), nil
	case *query.Regexp:
		if l, ok := regex.LiteralOf(q.Tree, q.CaseSensitive); ok && l.Text != "" {
			return literalMatching(l.Text, l.CaseSensitive, q.Scope), nil
		}
		m.scope = q.Scope
		if m.needs, err = regex.Analyze(q.Tree, q.CaseSensitive); err != nil {
			return m, err
		}
		m.matcher, err = regex.NewMatcher(q.Tree, q.CaseSensitive)
	}
	return m, err
}

func literalMatching(text string, caseSensitive bool, scope query.Scope) matching {
	f := literal.New(text, caseSensitive)
	return matching{scope: scope, matcher: f, finder: f, needs: regex.Literal{Text: text, CaseSensitive: caseSensitive}}
}
