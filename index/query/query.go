// Package query holds the query tree and the parser of the query language.
//
// The language is zoekt's (see docs/query.md), so that existing queries of people and programs keep
// their meaning. A tree is immutable once parsed and safe for concurrent use.
package query

import (
	"regexp/syntax"
	"strings"

	"github.com/trawl-search/trawl/index/symbols"
)

// Q is a node of a query tree. Its String form is for people and tests; it is not the query
// language.
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
	// Words are the texts of a match:any, one for each child: rarer words count more, and each file
	// lists those that it lacks. Every other Or has none. An expression is spelled as in the query.
	Words []string
}

// Not matches documents that the child does not match. Its ranges are never shown.
type Not struct{ Child Q }

// Const matches all documents or none.
type Const struct{ Value bool }

// Substring matches text that contains Pattern. Without CaseSensitive, runes are compared by
// Unicode simple case folding, as regexp does under (?i), so that U+212A matches k. With it, bytes
// are compared. Pattern is non-empty, valid UTF-8 without U+FFFD. A text with that rune becomes a
// Regexp (see Simplify), because there it also stands for an invalid byte.
type Substring struct {
	Pattern       string
	CaseSensitive bool
	Scope         Scope
}

// Regexp matches text in which the RE2 expression is found. Tree was parsed with Flags, has no
// captures, and does not contain the query's case setting: without CaseSensitive the whole
// expression is matched under (?i). Package regex compiles it.
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

// Reference matches documents whose content has the text of Child (a Substring or Regexp) outside
// of the names of symbols. A match that overlaps such a name does not count.
type Reference struct{ Child Q }

// Repo matches documents of repos in whose name the case-sensitive, unanchored expression is found.
// Tree was parsed with syntax.Perl: ^ and $ are the ends of the name.
type Repo struct{ Tree *syntax.Regexp }

// RepoSet matches documents of the named repos. A type:repo becomes one once its repos are known,
// and callers restrict a query with one.
type RepoSet struct{ Names map[string]bool }

// Branch matches documents on a branch whose name contains Pattern, case-sensitively; with Exact,
// whose name is Pattern. With Exact, HEAD is the repo's first branch.
type Branch struct {
	Pattern string
	Exact   bool
}

// Matches reports whether the query names a branch, by its name or by its place among the branches
// of its repo, from 0. The search of a shard and the pruning of shards both use it: if they
// disagreed, pruning would lose matches.
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

// Meta matches documents of repos that have a fact Key in whose value the case-sensitive,
// unanchored expression is found. Tree was parsed with syntax.Perl.
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

// Kind is what a type: returns.
type Kind uint8

// Kinds of results.
const (
	// KindFileMatch is a document with its matches; the default.
	KindFileMatch Kind = iota
	// KindFileName is a document's name, without matches in its content.
	KindFileName
	// KindRepo is a repo: it matches every document of a repo that has a document matching Child.
	KindRepo
)

// Type changes what its child returns.
type Type struct {
	Kind  Kind
	Child Q
}

// AsksForSymbols reports whether a query looks for names of symbols and shows them.
func AsksForSymbols(q Q) (asks bool) {
	WalkShown(q, func(q Q) {
		_, symbol := q.(*Symbol)
		asks = asks || symbol
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
