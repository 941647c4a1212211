package regex

import (
	"slices"
	"strconv"
	"strings"
)

// Needs is what a text must hold to be matched: an All, Literal, And or Or.
// It is necessary, not sufficient: it excludes no text with a match.
type Needs interface {
	// String is for people and tests.
	String() string
	isNeeds()
}

// All excludes nothing: the expression cannot be looked up.
type All struct{}

// Literal is held by texts in which Text stands as it is, or, without
// CaseSensitive, in any case by simple folding. Text is valid UTF-8 without
// U+FFFD; without CaseSensitive each rune is the representative of those
// that fold together, in lower case where that is ASCII. In a Needs it has three
// bytes or more. CaseSensitive is also true where no rune has another case.
type Literal struct {
	Text          string
	CaseSensitive bool
}

// And is held by texts that hold all of it, which are two or more.
type And struct{ Children []Needs }

// Or is held by texts that hold some of it; without children by none, which
// is what an expression gets that matches nothing at all.
type Or struct{ Children []Needs }

func (All) isNeeds()     {}
func (Literal) isNeeds() {}
func (And) isNeeds()     {}
func (Or) isNeeds()      {}

func (All) String() string   { return "all" }
func (n And) String() string { return joined(n.Children, " & ") }

// String quotes the text, followed by an i if case does not count.
func (n Literal) String() string {
	if n.CaseSensitive {
		return strconv.Quote(n.Text)
	}
	return strconv.Quote(n.Text) + "i"
}

func (n Or) String() string {
	if len(n.Children) == 0 {
		return "none"
	}
	return joined(n.Children, " | ")
}

func joined(children []Needs, separator string) string {
	parts := make([]string, len(children))
	for i, c := range children {
		parts[i] = c.String()
	}
	return "(" + strings.Join(parts, separator) + ")"
}

// and is held by what holds them all, without the parts that others imply.
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

// or is held by what holds any, without the parts that imply others.
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
// weaker than n. Lists that are too long to compare are only appended to.
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

// implies reports whether every text that holds a is known to hold b.
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
		lit, ok := a.(Literal)
		return ok && lit.contains(b)
	}
	return false
}

func each[N any](all []N, ok func(N) bool) bool {
	return !slices.ContainsFunc(all, func(n N) bool { return !ok(n) })
}

// contains reports whether a text that holds n must hold o.
func (n Literal) contains(o Literal) bool {
	if o.CaseSensitive {
		return (n.CaseSensitive || uncased(o.Text)) && strings.Contains(n.Text, o.Text)
	}
	return strings.Contains(n.folded(), o.Text)
}
