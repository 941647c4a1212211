package mcptools

import (
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
)

// Scope is the part of the arguments that restricts the search.
type Scope struct {
	Repos   []string `json:"repos,omitempty" jsonschema:"names of repos, such as github.com/org/name; * stands for any characters but /, ** for any; default all"`
	Paths   []string `json:"paths,omitempty" jsonschema:"globs of paths, any of which must match, such as src/** or *.go (a glob without / matches in every directory)"`
	Exclude []string `json:"exclude,omitempty" jsonschema:"globs of files and folders to leave out"`
	Branch  string   `json:"branch,omitempty" jsonschema:"only on branches with this text in their name; HEAD is the default branch; default all indexed branches"`
	Lang    string   `json:"lang,omitempty" jsonschema:"only in this language, such as go or c++"`
}

// globNote says what a glob of repos means, after one that matches none.
const globNote = ": a glob matches whole names, such as github.com/org/name, * stands for any characters but /, and ** for any, as in **name*"

// repos is the part of the query that selects repos.
func (s Scope) repos() string {
	return anyOf("r:", s.Repos, query.RepoGlob)
}

// query is the part of the query that selects documents, repos included.
func (s Scope) query() string {
	parts := []string{s.repos(), anyOf("f:", s.Paths, query.PathGlob)}
	for _, glob := range s.Exclude {
		parts = append(parts, "-f:"+query.Quote(query.ExcludedGlob(meant(glob))))
	}
	if s.Branch != "" {
		parts = append(parts, "b:"+query.Quote(s.Branch))
	}
	if s.Lang != "" {
		parts = append(parts, "lang:"+query.Quote(s.Lang))
	}
	return join(parts...)
}

// check refuses globs that can only be mistakes.
func (s Scope) check() error {
	for _, glob := range slices.Concat(s.Repos, s.Paths, s.Exclude) {
		if err := query.CheckGlob(meant(glob)); err != nil {
			return plainError(err.Error())
		}
	}
	return nil
}

// exactRepos are the names of repos without a glob.
func (s Scope) exactRepos() (names []string) {
	for _, name := range s.Repos {
		if name = meant(name); !strings.ContainsAny(name, "*?") {
			names = append(names, name)
		}
	}
	return names
}

// anyOf is a field with any of the globs as an expression.
func anyOf(field string, globs []string, expression func(string) string) string {
	if len(globs) == 0 {
		return ""
	}
	all := make([]string, len(globs))
	for i, glob := range globs {
		all[i] = expression(meant(glob))
	}
	return field + query.Quote(strings.Join(all, "|"))
}

// join joins the non-empty parts of a query with spaces.
func join(parts ...string) string {
	var all []string
	for _, p := range parts {
		if p != "" {
			all = append(all, p)
		}
	}
	return strings.Join(all, " ")
}
