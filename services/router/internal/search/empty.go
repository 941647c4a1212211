package search

import (
	"github.com/trawl-search/trawl/index/query"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// searchedRepos is how many repos are named where nothing matches.
const searchedRepos = 20

// empty says what was searched, and what may be wrong with the query; nil if something matches.
func (e *execution) empty(s *searchv1.Statistics) *searchv1.Empty {
	if s.GetFilesMatched() > 0 {
		return nil
	}
	empty := &searchv1.Empty{Hints: e.hints()}
	for _, root := range e.filteredRoots() {
		if empty.Repos++; empty.Repos > searchedRepos {
			continue
		}
		repo := &searchv1.SearchedRepo{Name: root.Repo}
		for _, b := range root.Branches {
			repo.Branches = append(repo.Branches, &searchv1.BranchEntry{Name: b.Name, Commit: b.Commit})
		}
		empty.Searched = append(empty.Searched, repo)
	}
	return empty
}

// filteredRoots are the roots, by name, of the repos in which the query can match as far as roots show: all of
// them if the memory for its expressions is taken.
func (e *execution) filteredRoots() (left []*catalogv1.Root) {
	evaluate, names := constant(maybe), e.layout.names
	if memory, err := e.service.memoryFor(e.tree); err == nil {
		defer memory.Close()
		if f, err := make(expressions).compile(onlyRepos(e.tree)); err == nil {
			evaluate = f
		}
	}
	for _, name := range names {
		if root := e.layout.roots[name]; evaluate(root, &catalogv1.ShardRef{}) != none {
			left = append(left, root)
		}
	}
	return left
}

// onlyRepos is the query without constants: what is none for other reasons than the names of repos still leaves
// these to be searched.
func onlyRepos(q query.Q) query.Q {
	return query.Map(q, func(n query.Q) query.Q {
		if c, ok := n.(*query.Const); ok && !c.Value {
			return &query.Language{}
		}
		return n
	})
}
