package search

import (
	"context"
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
