package search

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/internal/catalog"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// searchedRepos bounds the repos that an empty answer names.
const searchedRepos = 20

// empty returns what was searched and hints about the query, or nil if something matches or ctx
// ends before all repos were looked at. The caller is charged for its time.
func (e *execution) empty(ctx context.Context, p *searchPage) *searchv1.Empty {
	if p.statistics.GetFilesMatched() > 0 || p.after != nil || e.layout.Revision == 0 {
		return nil
	}
	defer e.ticket.computed(time.Now())
	repos, named, err := e.filteredRepos(ctx)
	if err != nil {
		return nil
	}
	if repos <= e.service.firstWindow && hasFacts(e.tree) {
		if names, all := e.passing(ctx); all {
			repos, named = len(names), names[:min(len(names), searchedRepos)]
		}
	}
	empty := &searchv1.Empty{Hints: e.hints(ctx), Repos: uint64(repos)}
	for _, name := range named {
		root, _ := e.layout.Root(name)
		repo := &searchv1.SearchedRepo{Name: name}
		for _, b := range root.Branches {
			repo.Branches = append(repo.Branches, &searchv1.BranchEntry{Name: b.Name, Commit: b.Commit})
		}
		empty.Searched = append(empty.Searched, repo)
	}
	return empty
}

// filteredRepos counts the repos in which the query can match by their roots, and returns the first of their names.
// It counts all repos if the query does not restrict them, or if no memory is left for its expressions. The error
// is that of ctx.
func (e *execution) filteredRepos(ctx context.Context) (repos int, named []string, err error) {
	memory, err := e.service.memoryFor(e.tree)
	var evaluate evaluator
	if err == nil {
		defer memory.Close()
		evaluate = e.ofRoots(memory)
	}
	if evaluate == nil {
		for name := range e.layout.names() {
			if named = append(named, name); len(named) == searchedRepos {
				break
			}
		}
		return e.layout.repos, named, nil
	}
	err = e.layout.eachRepo(ctx, "", evaluate, func(_ *chunk, r catalog.Record) bool {
		if repos++; repos <= searchedRepos {
			named = append(named, r.Repo)
		}
		return true
	})
	return repos, named, err
}

// ofRoots reduces the query to the part that roots decide. It is nil if there is none.
func (e *execution) ofRoots(memory *regex.Memory) evaluator {
	says := false
	query.Walk(e.tree, func(q query.Q) bool {
		switch q.(type) {
		case *query.Repo, *query.RepoSet, *query.Branch:
			says = true
		}
		return !says
	})
	if !says {
		return nil
	}
	evaluate, err := newExpressions(memory).compile(onlyRepos(e.tree))
	if err != nil {
		return nil
	}
	return evaluate
}

// hasFacts reports whether a query has filters that only shards know.
func hasFacts(q query.Q) (has bool) {
	query.Walk(q, func(n query.Q) bool {
		switch n.(type) {
		case *query.RepoFact, *query.Meta:
			has = true
		}
		return !has
	})
	return has
}

// passing are the names of the repos that pass the filters of the query, facts included, ascending. All reports whether every searcher
// that knows some has said so in time.
func (e *execution) passing(ctx context.Context) (names []string, all bool) {
	ctx, cancel := context.WithTimeout(ctx, nearestTime)
	defer cancel()
	l := e.aside()
	defer l.end()
	other, err := l.plan(ctx, &question{tree: filters(e.tree, true), version: e.asked.version})
	if err != nil {
		return nil, false
	}
	names = other.listNames(ctx, other.wanted)
	slices.Sort(names)
	return slices.Compact(names), other.coverage.Coverage().Complete
}

// filters are the filters of a query by repo, as a tree. What else decides about a document passes, so that no repo is left out that
// the query as a whole does not rule out; under a negation it does not.
func filters(q query.Q, passes bool) *searchv1.Query {
	operands := func(children []query.Q) *searchv1.Operands {
		o := &searchv1.Operands{}
		for _, c := range children {
			o.Queries = append(o.Queries, filters(c, passes))
		}
		return o
	}
	switch q := q.(type) {
	case *query.And:
		return &searchv1.Query{Node: &searchv1.Query_And{And: operands(q.Children)}}
	case *query.Or:
		return &searchv1.Query{Node: &searchv1.Query_Or{Or: operands(q.Children)}}
	case *query.Not:
		return &searchv1.Query{Node: &searchv1.Query_Not{Not: filters(q.Child, !passes)}}
	case *query.Type:
		if q.Kind != query.KindRepo {
			return filters(q.Child, passes)
		}
	case *query.Repo:
		return &searchv1.Query{Node: &searchv1.Query_Repo{Repo: q.Tree.String()}}
	case *query.RepoSet:
		return &searchv1.Query{Node: &searchv1.Query_Repos{Repos: &searchv1.RepoNames{Names: slices.Sorted(maps.Keys(q.Names))}}}
	case *query.Branch:
		return &searchv1.Query{Node: &searchv1.Query_Branch{Branch: &searchv1.BranchName{Name: q.Pattern, Exact: q.Exact}}}
	case *query.Meta:
		return &searchv1.Query{Node: &searchv1.Query_Meta{Meta: &searchv1.RepoMeta{Key: q.Key, Expression: q.Tree.String()}}}
	case *query.RepoFact:
		kind := map[query.Fact]searchv1.RepoFact_Kind{
			query.Archived: searchv1.RepoFact_KIND_ARCHIVED, query.Fork: searchv1.RepoFact_KIND_FORK, query.Public: searchv1.RepoFact_KIND_PUBLIC,
		}[q.Fact]
		return &searchv1.Query{Node: &searchv1.Query_Fact{Fact: &searchv1.RepoFact{Kind: kind, Value: q.Value}}}
	}
	return &searchv1.Query{Node: &searchv1.Query_All{All: passes}}
}

// onlyRepos removes the constants of a query. A constant that matches nothing for another reason than the name
// of a repo must not hide the repos that the rest selects.
func onlyRepos(q query.Q) query.Q {
	return query.Map(q, func(n query.Q) query.Q {
		if c, ok := n.(*query.Const); ok && !c.Value {
			return &query.Substring{} // only shards know it
		}
		return n
	})
}
