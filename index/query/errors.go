package query

import (
	"cmp"
	"errors"
	"fmt"
)

// ErrUnresolved is returned when a Type of KindRepo is evaluated that
// ResolveRepos has not replaced: a single shard does not know all documents of
// its repos.
var ErrUnresolved = errors.New("type:repo was not resolved to a set of repos before evaluation")

// SyntaxError says what is wrong with a query and how to fix it.
type SyntaxError struct {
	// Position is the byte offset in the query, from 0 to its length.
	Position int
	// Found describes or quotes the text at Position.
	Found string
	// Expected says what would be correct, and how to write what the author
	// probably meant.
	Expected string
}

// Error gives position, what was found and what was expected.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("query syntax error at byte %d: found %s; expected %s", e.Position, e.Found, e.Expected)
}

// LimitError says which limit a query exceeds.
type LimitError struct {
	// Limit is one of the Limit constants.
	Limit string
	// Value is the query's amount, at least; Max is the largest allowed.
	Value, Max int
}

// limitAdvice says what to do about each limit.
var limitAdvice = map[string]string{
	LimitBytes:      "shorten the query",
	LimitDepth:      "use fewer parentheses or negations inside each other",
	LimitAtoms:      "search for fewer terms at once",
	LimitProgram:    "make the regular expression smaller: fewer or smaller {n,m} counts and alternatives",
	LimitPrograms:   "make the regular expressions smaller, or search for some of them at a time",
	LimitClasses:    `use fewer \p{…}; leave out (?i), as case:no does the same, or write ranges as \p{…}`,
	LimitFilters:    "join repo: filters, or file: filters, to one with alternatives, as in repo:(a|b)",
	LimitRepos:      "make the expressions of repo: and meta. smaller: fewer or smaller {n,m} counts and alternatives",
	LimitTypeRepo:   "use fewer type:repo, or ask for their repos first and name these with repo:",
	LimitRepetition: "lower the {n,m} counts of the regular expression, or use * or +",
	LimitVersion:    "ask for a syntax version that this server knows",
}

// Advice says how to change a query that exceeds the limit.
func (e *LimitError) Advice() string { return cmp.Or(limitAdvice[e.Limit], "simplify the query") }

// Error names the limit, both figures, and what to change.
func (e *LimitError) Error() string {
	return fmt.Sprintf("query passes the limit on its %s: %d, at most %d; %s", e.Limit, e.Value, e.Max, e.Advice())
}
