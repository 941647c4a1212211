package query

import (
	"bytes"
	"cmp"
	"regexp/syntax"
	"unicode/utf8"
)

// Names of limits, as LimitError uses them.
const (
	LimitBytes      = "bytes"              // length of the query
	LimitDepth      = "depth"              // groups and negations inside each other, or groups of a regular expression
	LimitAtoms      = "terms"              // texts and fields
	LimitProgram    = "regexp program"     // instructions of one compiled regular expression
	LimitPrograms   = "regexp programs"    // instructions of all regular expressions
	LimitClasses    = "large classes"      // \p{…}, and dashes in an expression with flags and runes beyond ASCII
	LimitFilters    = "filters"            // repo:, meta. and file:
	LimitRepos      = "repo programs"      // instructions of all repo: and meta.
	LimitTypeRepo   = "type:repo"          // each is a search of its own
	LimitRepetition = "regexp repetitions" // largest count, multiplied over nested repetitions
	LimitVersion    = "syntax version"     // not a size: ParseOptions.SyntaxVersion is unknown
)

// MaxSyntaxVersion is the newest version of the query language. Versions 0 and
// 1 are zoekt's language; fields of Trawl's own belong to version 2: ref:,
// sym.kind:, type:symbol and, from revision 2 on, match:, path:, count:, timeout: and select:.
const MaxSyntaxVersion = 2

// Revision grows with each field that version 2 gains. A program that knows an older revision would
// read such a field as text.
const Revision = 2

// Limits bound what a query may cost before it has read any shard. A zero field means its default.
// Parse checks them while it reads, so that the cost of a query that it refuses is bounded too.
type Limits struct {
	// Bytes is the most bytes of a query; default 16,384.
	Bytes int
	// Depth is the most groups and negations inside each other; default 100.
	Depth int
	// Atoms is the most texts and fields; default 1,000.
	Atoms int
	// Program is the most instructions of one regular expression; default 20,000.
	Program int
	// Programs is the most instructions of all texts and fields; default 40,000.
	Programs int
	// Classes is the most large classes; default 20. Each takes the time of many
	// thousand runes to parse.
	Classes int
	// Filters is the most repo:, meta. and file:; default 500.
	Filters int
	// Repos is the most instructions of all repo: and meta., which routers compile
	// too; default 10,000.
	Repos int
	// TypeRepo is the most type:repo; default 10.
	TypeRepo int
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
		Programs:   cmp.Or(l.Programs, 40_000),
		Classes:    cmp.Or(l.Classes, 20),
		Filters:    cmp.Or(l.Filters, 500),
		Repos:      cmp.Or(l.Repos, 10_000),
		TypeRepo:   cmp.Or(l.TypeRepo, 10),
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

// spent is what a query has taken of its limits so far.
type spent struct{ programs, classes, filters, repos, typeRepos int }

// text counts what the text of an expression takes before it is parsed: regexp/syntax
// expands \p{L} to a thousand runes, and folds a range under (?i) rune by rune.
func (s *spent) text(text []byte, l Limits) error {
	s.classes += bytes.Count(text, []byte(`\p`)) + bytes.Count(text, []byte(`\P`))
	if wide := bytes.Contains(text, []byte(`\x`)) || bytes.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }); wide && bytes.Contains(text, []byte("(?")) {
		s.classes += bytes.Count(text, []byte("-"))
	}
	return over(LimitClasses, s.classes, l.Classes)
}

// expression counts a parsed expression. It counts without compiling: a small
// expression can have a huge program.
func (s *spent) expression(tree *syntax.Regexp, kind tokenKind, l Limits) error {
	if err := over(LimitRepetition, repetitions(tree), l.Repetition); err != nil {
		return err
	}
	n := instructions(tree)
	if err := over(LimitProgram, n, l.Program); err != nil {
		return err
	}
	switch kind {
	case tokenRepo, tokenMeta:
		s.filters++
		s.repos += n
	case tokenFile:
		s.filters++
	}
	s.programs += n
	return cmp.Or(over(LimitPrograms, s.programs, l.Programs), over(LimitFilters, s.filters, l.Filters), over(LimitRepos, s.repos, l.Repos))
}

// typeRepo counts a type:repo.
func (s *spent) typeRepo(l Limits) error {
	s.typeRepos++
	return over(LimitTypeRepo, s.typeRepos, l.TypeRepo)
}

func over(limit string, value, most int) error {
	if value > most {
		return &LimitError{limit, value, most}
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

// instructions bounds the length of the program that the standard library makes of the
// expression. It cannot overflow: counts multiply to at most maxRepetition, and the rest
// is bounded by the length of the query.
func instructions(tree *syntax.Regexp) int {
	n := 0
	for _, sub := range tree.Sub {
		n += instructions(sub)
	}
	switch tree.Op {
	case syntax.OpLiteral:
		return len(tree.Rune)
	case syntax.OpCharClass:
		return 1 + len(tree.Rune)/64 // a class is one instruction, but a large one is costly
	case syntax.OpRepeat:
		optional := max(tree.Max-tree.Min, 2) // each is one more, as is the loop of {n,}
		return n*max(tree.Min, tree.Max, 1) + optional
	case syntax.OpConcat:
		return max(n, 1)
	case syntax.OpAlternate:
		return n + len(tree.Sub)
	case syntax.OpStar, syntax.OpCapture:
		return n + 2
	}
	return n + 1
}

// Instructions bounds the length of all programs that the expressions of the query
// compile to. What is added to a query never lowers it. Parse bounds it by
// Limits.Programs.
func Instructions(q Q) (n int) {
	Walk(q, func(q Q) bool {
		switch q := q.(type) {
		case *Substring:
			n += utf8.RuneCountInString(q.Pattern)
		case *Regexp:
			n += instructions(q.Tree)
		case *Symbol:
			n += Instructions(q.Child)
		case *Reference:
			n += Instructions(q.Child)
		}
		return true
	})
	return n + RepoInstructions(q)
}

// RepoInstructions is the part of Instructions that Repo and Meta have. Parse bounds it
// by Limits.Repos.
func RepoInstructions(q Q) (n int) {
	Walk(q, func(q Q) bool {
		switch q := q.(type) {
		case *Repo:
			n += instructions(q.Tree)
		case *Meta:
			n += instructions(q.Tree)
		}
		return true
	})
	return n
}
