package query

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// Simplify gives an equivalent tree without needless nodes: conjunctions and disjunctions are flat
// and have at least two children, constants are only at the root, empty patterns are constants, and
// a Substring that contains U+FFFD is a Regexp. A type: over a constant becomes that constant.
// Trees built by hand should be simplified before evaluation. It does not change its argument.
func Simplify(q Q) Q { return Map(q, simplifyNode) }

// Map rebuilds the tree from the leaves up. It replaces each node by the result of f, which it
// calls with a node whose children have been replaced. It leaves the child of a Symbol or Reference
// alone, since that is part of the atom. It does not change its argument unless f changes a node in
// place.
func Map(q Q, f func(Q) Q) Q {
	switch n := q.(type) {
	case *And:
		return f(&And{Children: mapAll(n.Children, f)})
	case *Or:
		return f(&Or{Children: mapAll(n.Children, f), Words: n.Words})
	case *Not:
		return f(&Not{Child: Map(n.Child, f)})
	case *Type:
		return f(&Type{Kind: n.Kind, Child: Map(n.Child, f)})
	}
	return f(q)
}

// Walk calls visit for each node, parents first and children in order. If visit returns false for a
// node, Walk skips its children.
func Walk(q Q, visit func(Q) bool) {
	if !visit(q) {
		return
	}
	for _, c := range children(q) {
		Walk(c, visit)
	}
}

// WalkShown is Walk for the nodes outside of a Not: the ranges of its child are never shown.
func WalkShown(q Q, visit func(Q)) {
	Walk(q, func(q Q) bool {
		if _, not := q.(*Not); not {
			return false
		}
		visit(q)
		return true
	})
}

func children(q Q) []Q {
	switch n := q.(type) {
	case *And:
		return n.Children
	case *Or:
		return n.Children
	case *Not:
		return []Q{n.Child}
	case *Type:
		return []Q{n.Child}
	}
	return nil
}

func mapAll(qs []Q, f func(Q) Q) []Q {
	mapped := make([]Q, len(qs))
	for i, q := range qs {
		mapped[i] = Map(q, f)
	}
	return mapped
}

// simplifyNode simplifies a node whose children are simple.
func simplifyNode(q Q) Q {
	switch n := q.(type) {
	case *And:
		return simplifyList(n.Children, true)
	case *Or:
		if n.Words != nil {
			n = withoutRepeats(n)
		}
		q := simplifyList(n.Children, false)
		if or, ok := q.(*Or); ok {
			or.Words = n.Words
		}
		return q
	case *Not:
		if c, ok := n.Child.(*Const); ok {
			return &Const{Value: !c.Value}
		}
	case *Type:
		if c, ok := n.Child.(*Const); ok {
			return c
		}
	case *Substring:
		if n.Pattern == "" {
			return &Const{Value: true}
		}
		if strings.ContainsRune(n.Pattern, '\uFFFD') {
			tree := &syntax.Regexp{Op: syntax.OpLiteral, Flags: Flags, Rune: []rune(n.Pattern)}
			return &Regexp{Tree: tree, CaseSensitive: n.CaseSensitive, Scope: n.Scope}
		}
	case *Regexp:
		return constIf(isEmpty(n.Tree), true, q)
	case *Repo:
		return constIf(isEmpty(n.Tree), true, q)
	case *Branch:
		return constIf(n.Pattern == "" && !n.Exact, true, q)
	case *RepoSet:
		return constIf(len(n.Names) == 0, false, q)
	}
	return q
}

// withoutRepeats returns a match:any without the words that it repeats: each counts once.
func withoutRepeats(loose *Or) *Or {
	once, seen := &Or{}, map[string]bool{}
	for i, c := range loose.Children {
		if text := c.String(); !seen[text] {
			seen[text] = true
			once.Children, once.Words = append(once.Children, c), append(once.Words, loose.Words[i])
		}
	}
	return once
}

// isEmpty reports whether the expression is the empty text, which is found everywhere.
func isEmpty(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpEmptyMatch:
		return true
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return isEmpty(tree.Sub[0])
	}
	return false
}

func constIf(is, value bool, q Q) Q {
	if is {
		return &Const{Value: value}
	}
	return q
}

// simplifyList joins simple children; with and by And, otherwise by Or.
func simplifyList(qs []Q, and bool) Q {
	var flat []Q
	for _, q := range qs {
		if c, ok := q.(*Const); ok {
			if c.Value != and {
				return c
			}
			continue
		}
		if nested, same := sameList(q, and); same {
			flat = append(flat, nested...)
		} else {
			flat = append(flat, q)
		}
	}
	switch {
	case len(flat) == 0:
		return &Const{Value: and}
	case len(flat) == 1:
		return flat[0]
	case and:
		return &And{Children: flat}
	}
	return &Or{Children: flat}
}

func sameList(q Q, and bool) ([]Q, bool) {
	switch n := q.(type) {
	case *And:
		return n.Children, and
	case *Or:
		return n.Children, !and && n.Words == nil
	}
	return nil, false
}

// ResolveRepos replaces each Type of KindRepo, the innermost first, by the
// RepoSet of the names that list returns for its child. It calls list once for
// each. An error of list ends the resolution.
func ResolveRepos(q Q, list func(Q) (names []string, err error)) (Q, error) {
	var failed error
	resolved := Map(q, func(n Q) Q {
		t, ok := n.(*Type)
		if !ok || t.Kind != KindRepo || failed != nil {
			return n
		}
		names, err := list(t.Child)
		if err != nil {
			failed = fmt.Errorf("listing the repos for %s: %w", t, err)
		}
		return NewRepoSet(names...)
	})
	if failed != nil {
		return nil, failed
	}
	return Simplify(resolved), nil
}

// NewRepoSet makes the set of the named repos.
func NewRepoSet(names ...string) *RepoSet {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return &RepoSet{Names: set}
}
