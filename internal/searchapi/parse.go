package searchapi

import (
	"errors"
	"fmt"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/gitsource/language"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Parse parses a query as every role of this version does. Its error is a status that
// says where the query is wrong, or which limit it exceeds.
func Parse(text string, syntaxVersion uint32) (query.Q, error) {
	q, _, err := ParseAnswer(text, syntaxVersion)
	return q, err
}

// ParseAnswer is Parse, and also returns what the query says of its answer.
func ParseAnswer(text string, syntaxVersion uint32) (query.Q, query.Answer, error) {
	q, answer, err := query.ParseAnswer(text, query.ParseOptions{SyntaxVersion: int(syntaxVersion), Language: languageName})
	if err != nil {
		return nil, query.Answer{}, QueryError("query", err)
	}
	return q, answer, nil
}

func languageName(alias string) string {
	name, _ := language.ByAlias(alias)
	return name
}

// nextRepos is the error that stops a resolution at the first type:repo that has no
// names yet.
type nextRepos struct{ child query.Q }

func (nextRepos) Error() string { return "the repos of a type:repo are not known yet" }

// Resolve replaces the type:repo of a query by the names that a plan gives, in the
// order of query.ResolveRepos. If the plan has too few, next is the query of the
// first type:repo without names, and resolved is nil.
func Resolve(q query.Q, names []*searchv1.RepoNames) (resolved, next query.Q, err error) {
	used := 0
	resolved, err = query.ResolveRepos(q, func(child query.Q) ([]string, error) {
		if used == len(names) {
			return nil, nextRepos{child}
		}
		used++
		return names[used-1].GetNames(), nil
	})
	var more nextRepos
	switch {
	case errors.As(err, &more):
		return nil, more.child, nil
	case err != nil:
		return nil, nil, err
	case used < len(names):
		return nil, nil, fmt.Errorf("the plan resolves %d type:repo, the query has %d", len(names), used)
	}
	return resolved, nil, nil
}
