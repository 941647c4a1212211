package regex

import (
	"iter"
	"slices"
	"strings"
)

// Needs is what a text must contain to be matched: an All, Literal, And or Or.
// It is necessary but not sufficient: it excludes no text with a match.
type Needs interface{ isNeeds() }

// All excludes nothing: the index cannot narrow down the expression.
type All struct{}

// Literal is met by texts that contain Text exactly, or, without CaseSensitive,
// in any case by simple folding. Text is valid UTF-8 without U+FFFD. Without
// CaseSensitive each rune is the representative of those that fold together, in
// lower case if that is ASCII. In a Needs it has at least three bytes.
// CaseSensitive is also true if no rune has another case.
type Literal struct {
	Text          string
	CaseSensitive bool
}

// And is met by texts that meet all of its children. It has at least two.
type And struct{ Children []Needs }

// Or is met by texts that meet a child. Without children no text meets it: that
// is the Needs of an expression that matches nothing.
type Or struct{ Children []Needs }

func (All) isNeeds()     {}
func (Literal) isNeeds() {}
func (And) isNeeds()     {}
func (Or) isNeeds()      {}

// Fold computes a value of needs from those of their literals: both joins the values of an And, either those of an Or, which may have none. ok is
// false where nothing is restricted, which an And leaves out and an Or becomes.
func Fold[T any](n Needs, literal func(Literal) (T, bool, error), both, either func([]T) T) (value T, ok bool, err error) {
	var parts []T
	switch n := n.(type) {
	case Literal:
		return literal(n)
	case And:
		for _, c := range n.Children {
			part, ok, err := Fold(c, literal, both, either)
			if err != nil {
				return value, false, err
			}
			if ok {
				parts = append(parts, part)
			}
		}
		if len(parts) == 0 {
			return value, false, nil
		}
		return both(parts), true, nil
	case Or:
		for _, c := range n.Children {
			part, ok, err := Fold(c, literal, both, either)
			if !ok || err != nil {
				return value, false, err
			}
			parts = append(parts, part)
		}
		return either(parts), true, nil
	}
	return value, false, nil
}

// Literals yields the literals of needs, in their order.
func Literals(n Needs) iter.Seq[Literal] {
	return func(yield func(Literal) bool) { yieldLiterals(n, yield) }
}

func yieldLiterals(n Needs, yield func(Literal) bool) bool {
	var children []Needs
	switch n := n.(type) {
	case Literal:
		return yield(n)
	case And:
		children = n.Children
	case Or:
		children = n.Children
	}
	for _, c := range children {
		if !yieldLiterals(c, yield) {
			return false
		}
	}
	return true
}

// and returns what meets all needs, without the parts that others imply.
func and(needs []Needs) Needs {
	var all []Needs
	for _, n := range needs {
		for _, c := range conjuncts(n) {
			all = addStrongest(all, c, implies)
		}
	}
	switch len(all) {
	case 0:
		return All{}
	case 1:
		return all[0]
	}
	return And{all}
}

func conjuncts(n Needs) []Needs {
	switch n := n.(type) {
	case All:
		return nil
	case And:
		return n.Children
	}
	return []Needs{n}
}

// or returns what meets any of the needs, without the parts that imply others.
func or(needs []Needs) Needs {
	var all []Needs
	for _, n := range needs {
		if _, ok := n.(All); ok {
			return All{}
		}
		for _, d := range disjuncts(n) {
			all = addStrongest(all, d, func(a, b Needs) bool { return implies(b, a) })
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return Or{all}
}

func disjuncts(n Needs) []Needs {
	if n, ok := n.(Or); ok {
		return n.Children
	}
	return []Needs{n}
}

// mostCompared is the most parts that are compared with each other.
const mostCompared = 64

// addStrongest adds n unless a part is stronger, and drops the parts that are
// weaker than n. It only appends to lists that are too long to compare.
func addStrongest(all []Needs, n Needs, stronger func(a, b Needs) bool) []Needs {
	if len(all) > mostCompared {
		return append(all, n)
	}
	kept := make([]Needs, 0, len(all)+1)
	for _, other := range all {
		if stronger(other, n) {
			return all
		}
		if !stronger(n, other) {
			kept = append(kept, other)
		}
	}
	return append(kept, n)
}

// implies reports whether every text that meets a certainly meets b.
func implies(a, b Needs) bool {
	switch a := a.(type) {
	case Or:
		return len(a.Children) <= mostCompared && each(a.Children, func(n Needs) bool { return implies(n, b) })
	case And:
		return slices.ContainsFunc(a.Children, func(n Needs) bool { return implies(n, b) })
	}
	switch b := b.(type) {
	case All:
		return true
	case Or:
		return len(b.Children) <= mostCompared && slices.ContainsFunc(b.Children, func(n Needs) bool { return implies(a, n) })
	case And:
		return each(b.Children, func(n Needs) bool { return implies(a, n) })
	case Literal:
		switch lit, ok := a.(Literal); {
		case !ok:
			return false
		case b.CaseSensitive:
			return (lit.CaseSensitive || uncased(b.Text)) && strings.Contains(lit.Text, b.Text)
		default:
			return strings.Contains(lit.folded(), b.Text)
		}
	}
	return false
}

func each[N any](all []N, ok func(N) bool) bool {
	return !slices.ContainsFunc(all, func(n N) bool { return !ok(n) })
}
