// Package query holds the query tree and the parser of the query language.
//
// The language is zoekt's (see docs/query.md), so that a query that people and
// programs already have means here what it meant there. A tree is immutable
// once parsed and safe for concurrent use.
package query

import (
	"regexp/syntax"
	"strings"

	"github.com/trawl-search/trawl/index/symbols"
)

// Q is a node of a query tree. Its String form is for people and for tests; it
// is not the query language.
type Q interface {
	String() string
	isQuery()
}

// Scope says where the text of an atom is looked for.
type Scope uint8

// Scopes of an atom.
const (
	// Either means content or path; bare text has it.
	Either Scope = iota
	// Content means the document's content only (c:, content:).
	Content
	// FileName means the document's path only (f:, file:).
	FileName
)

// And matches documents that every child matches; without children, all.
type And struct{ Children []Q }

// Or matches documents that some child matches; without children, none.
type Or struct {
	Children []Q
	// Loose says that the children are the words of a match:any: rarer words count more, and each file says which it lacks.
	Loose bool
}

// Not matches documents that the child does not. Its ranges are never shown.
type Not struct{ Child Q }

// Const matches all documents or none.
type Const struct{ Value bool }

// Substring matches text that holds Pattern. Without CaseSensitive, runes are
// compared by Unicode simple case folding, as regexp does under (?i), so that
// U+212A matches k; with it, bytes are compared. Pattern is non-empty valid
// UTF-8 without U+FFFD: that rune is looked for by a Regexp (see Simplify),
// because there it also stands for a byte that is not UTF-8.
type Substring struct {
	Pattern       string
	CaseSensitive bool
	Scope         Scope
}

// Regexp matches text in which the RE2 expression is found. Tree was parsed
// with Flags, has no captures, and holds no case flag of the query: without
// CaseSensitive the whole expression is matched under (?i). Package regex
// compiles it.
type Regexp struct {
	Tree          *syntax.Regexp
	CaseSensitive bool
	Scope         Scope
}

// Flags are the regexp/syntax flags of every expression in a query: the
// same as zoekt's, so ^ and $ are per line and . excludes the newline.
const Flags = syntax.ClassNL | syntax.PerlX | syntax.UnicodeGroups

// Symbol matches documents in which the text of Child (a Substring or Regexp)
// lies within the name of a symbol of one of the kinds.
type Symbol struct {
	Child Q
	Kinds symbols.KindSet
}

// Reference matches documents whose content holds the text of Child (a Substring or Regexp)
// outside of the names of symbols. A match that overlaps such a name is none.
type Reference struct{ Child Q }

// Repo matches documents of repos whose name the case-sensitive, unanchored
// expression is found in. Tree was parsed with syntax.Perl: ^ and $ are the
// ends of the name.
type Repo struct{ Tree *syntax.Regexp }

// RepoSet matches documents of the repos named. It is what a type:repo
// becomes once its repos are known, and what callers restrict a query with.
type RepoSet struct{ Names map[string]bool }

// Branch matches documents on a branch whose name holds Pattern, with case;
// with Exact, whose name is Pattern. HEAD, exactly, is the repo's first branch.
type Branch struct {
	Pattern string
	Exact   bool
}

// Matches reports whether the query names a branch by its name, or by its place among the
// branches of its repo, from 0. A shard's search and the pruning of shards both rely on it:
// they must agree, or pruning would lose matches.
func (q *Branch) Matches(name string, ordinal int) bool {
	switch {
	case q.Pattern == "HEAD":
		return ordinal == 0
	case q.Exact:
		return name == q.Pattern
	}
	return strings.Contains(name, q.Pattern)
}

// Language matches documents in the language with this linguist name.
type Language struct{ Name string }

// Meta matches documents of repos that have a fact Key, and whose value of it
// the case-sensitive, unanchored expression is found in. Tree was parsed with
// syntax.Perl.
type Meta struct {
	Key  string
	Tree *syntax.Regexp
}

// Fact is a yes-or-no fact of a repo.
type Fact uint8

// Facts of a repo.
const (
	Archived Fact = iota
	Fork
	Public
)

// RepoFact matches documents of repos for which Fact is Value.
type RepoFact struct {
	Fact  Fact
	Value bool
}

// Kind is what a type: asks to be returned.
type Kind uint8

// Kinds of results.
const (
	// KindFileMatch is a document with its matches; the default.
	KindFileMatch Kind = iota
	// KindFileName is a document's name, without matches in its content.
	KindFileName
	// KindRepo is a repo: it matches every document of a repo in which some document matches Child.
	KindRepo
)

// Type changes what its child returns.
type Type struct {
	Kind  Kind
	Child Q
}

// AsksForSymbols reports whether a query looks for names of symbols that are shown.
func AsksForSymbols(q Q) (asks bool) {
	Walk(q, func(q Q) bool {
		switch q.(type) {
		case *Not:
			return false
		case *Symbol:
			asks = true
		}
		return !asks
	})
	return asks
}

func (*And) isQuery()       {}
func (*Or) isQuery()        {}
func (*Not) isQuery()       {}
func (*Const) isQuery()     {}
func (*Substring) isQuery() {}
func (*Regexp) isQuery()    {}
func (*Symbol) isQuery()    {}
func (*Reference) isQuery() {}
func (*Repo) isQuery()      {}
func (*RepoSet) isQuery()   {}
func (*Branch) isQuery()    {}
func (*Language) isQuery()  {}
func (*Meta) isQuery()      {}
func (*RepoFact) isQuery()  {}
func (*Type) isQuery()      {}
