package query

import (
	"cmp"
	"regexp/syntax"
)

// Names of limits, as LimitError has them.
const (
	LimitBytes      = "bytes"              // length of the query
	LimitDepth      = "depth"              // groups and negations inside each other, or groups of a regular expression
	LimitAtoms      = "terms"              // texts and fields
	LimitProgram    = "regexp program"     // instructions of one compiled regular expression
	LimitRepetition = "regexp repetitions" // largest count, multiplied over nested repetitions
	LimitVersion    = "syntax version"     // not a size: ParseOptions.SyntaxVersion is unknown
)

// MaxSyntaxVersion is the newest version of the query language. Versions 0 and
// 1 are zoekt's language; fields of Trawl's own belong to version 2, which so
// far adds none.
const MaxSyntaxVersion = 2

// Limits bound what a query may cost before it has read anything. A zero field
// means its default.
type Limits struct {
	// Bytes is the most bytes of a query; default 16,384.
	Bytes int
	// Depth is the most groups and negations inside each other; default 100.
	Depth int
	// Atoms is the most texts and fields; default 1,000.
	Atoms int
	// Program is the most instructions of one regular expression; default 20,000.
	Program int
	// Repetition is the largest {n,m} count, multiplied over nested ones;
	// default and most 1,000.
	Repetition int
}

// maxRepetition is what regexp/syntax itself allows.
const maxRepetition = 1000

func (l Limits) withDefaults() Limits {
	return Limits{
		Bytes:      cmp.Or(l.Bytes, 16<<10),
		Depth:      cmp.Or(l.Depth, 100),
		Atoms:      cmp.Or(l.Atoms, 1000),
		Program:    cmp.Or(l.Program, 20_000),
		Repetition: min(cmp.Or(l.Repetition, maxRepetition), maxRepetition),
	}
}

// ParseOptions say how to read a query. The zero value is zoekt's language
// with default limits.
type ParseOptions struct {
	// SyntaxVersion is the version of the query language, at most
	// MaxSyntaxVersion; 0 means 1.
	SyntaxVersion int
	// Limits bound the query.
	Limits Limits
	// Language gives the linguist name for a name or alias in lang:, or "" if
	// there is none, and then lang: matches nothing. Nil takes names as they are.
	Language func(name string) string
}

// check reports whether the regular expression stays within the limits. It
// counts without compiling: a small expression can have a huge program.
func (l Limits) check(tree *syntax.Regexp) error {
	if n := repetitions(tree); n > l.Repetition {
		return &LimitError{LimitRepetition, n, l.Repetition}
	}
	if n := instructions(tree); n > l.Program {
		return &LimitError{LimitProgram, n, l.Program}
	}
	return nil
}

// repetitions is the largest product of the counts on a way down the tree.
func repetitions(tree *syntax.Regexp) int {
	largest := 1
	for _, sub := range tree.Sub {
		largest = max(largest, repetitions(sub))
	}
	if tree.Op == syntax.OpRepeat {
		largest *= max(tree.Min, tree.Max, 1)
	}
	return largest
}

// instructions is an upper estimate of the program's length. It cannot
// overflow: counts multiply to at most maxRepetition, and the rest is bounded
// by the length of the query.
func instructions(tree *syntax.Regexp) int {
	n := 1
	for _, sub := range tree.Sub {
		n += instructions(sub)
	}
	switch tree.Op {
	case syntax.OpLiteral:
		return len(tree.Rune)
	case syntax.OpCharClass:
		return 1 + len(tree.Rune)/64 // a class is one instruction, but a large one is costly
	case syntax.OpRepeat:
		return n * max(tree.Min, tree.Max, 1)
	}
	return n
}
