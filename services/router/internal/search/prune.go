package search

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// verdict is what is known, without reading it, about the documents of one repo
// in one shard.
type verdict int8

const (
	none  verdict = -1 // none of them matches
	maybe verdict = 0
	all   verdict = 1 // each of them matches
)

// judge gives the verdict on a repo in a shard.
type judge func(root *catalogv1.Root, ref *catalogv1.ShardRef) verdict

// Select gives the shards that the query must search; in the others it cannot
// match. They are the layout's own: nothing of them may be changed. The query's
// type:repo must be resolved: one that is not prunes nothing.
func (l *Layout) Select(q query.Q) (wanted []searchapi.Shard, err error) {
	if !prunes(q) {
		return l.All(), nil
	}
	judge, err := compile(q)
	if err != nil {
		return nil, fmt.Errorf("plan query: %w", err)
	}
	for i := range l.shards {
		if l.shards[i].mayMatch(judge) {
			wanted = append(wanted, l.all[i])
		}
	}
	return wanted, nil
}

// prunes says whether something in the query can tell without a look into a shard
// that nothing in it matches.
func prunes(q query.Q) (some bool) {
	query.Walk(q, func(n query.Q) bool {
		switch n := n.(type) {
		case *query.Const, *query.Repo, *query.RepoSet, *query.Branch, *query.Language:
			some = true
		case *query.Type:
			return !some && n.Kind != query.KindRepo
		}
		return !some
	})
	return some
}

// mayMatch says whether a document of some repo in the shard may match.
func (s *Shard) mayMatch(judge judge) bool {
	for i, root := range s.Roots {
		if judge(root, s.refs[i]) != none {
			return true
		}
	}
	return false
}

func compile(q query.Q) (judge, error) {
	switch q := q.(type) {
	case *query.And:
		return compileAll(q.Children, all, func(a, b verdict) verdict { return min(a, b) })
	case *query.Or:
		return compileAll(q.Children, none, func(a, b verdict) verdict { return max(a, b) })
	case *query.Not:
		child, err := compile(q.Child)
		return func(r *catalogv1.Root, s *catalogv1.ShardRef) verdict { return -child(r, s) }, err
	case *query.Type:
		if q.Kind != query.KindRepo {
			return compile(q.Child)
		}
	case *query.Const:
		return constant(exactly(q.Value)), nil
	case *query.Repo:
		return compileRepo(q)
	case *query.RepoSet:
		return func(r *catalogv1.Root, _ *catalogv1.ShardRef) verdict { return exactly(q.Names[r.Repo]) }, nil
	case *query.Branch:
		return func(r *catalogv1.Root, _ *catalogv1.ShardRef) verdict { return judgeBranch(q, r) }, nil
	case *query.Language:
		return func(_ *catalogv1.Root, s *catalogv1.ShardRef) verdict { return judgeLanguage(q, s) }, nil
	}
	// Text, symbols and the facts of a repo are known in the shard only.
	return constant(maybe), nil
}

func constant(v verdict) judge {
	return func(*catalogv1.Root, *catalogv1.ShardRef) verdict { return v }
}

func exactly(matches bool) verdict {
	if matches {
		return all
	}
	return none
}

func compileAll(children []query.Q, start verdict, combine func(a, b verdict) verdict) (judge, error) {
	judges := make([]judge, len(children))
	for i, c := range children {
		j, err := compile(c)
		if err != nil {
			return nil, err
		}
		judges[i] = j
	}
	return func(r *catalogv1.Root, s *catalogv1.ShardRef) verdict {
		v := start
		for _, j := range judges {
			v = combine(v, j(r, s))
		}
		return v
	}, nil
}

func compileRepo(q *query.Repo) (judge, error) {
	re, err := regexp.Compile(q.Tree.String())
	if err != nil {
		return nil, fmt.Errorf("compile the expression of repo: %w", err)
	}
	return func(r *catalogv1.Root, _ *catalogv1.ShardRef) verdict { return exactly(re.MatchString(r.Repo)) }, nil
}

// judgeBranch knows that a document is on some branch of its repo, and which
// when there is one only. A root without branches does not tell.
func judgeBranch(q *query.Branch, root *catalogv1.Root) verdict {
	if len(root.Branches) == 0 {
		return maybe
	}
	matching := 0
	for i, b := range root.Branches {
		if branchMatches(q, i, b.Name) {
			matching++
		}
	}
	switch matching {
	case 0:
		return none
	case len(root.Branches):
		return all
	}
	return maybe
}

func branchMatches(q *query.Branch, ordinal int, name string) bool {
	switch {
	case q.Pattern == "HEAD":
		return ordinal == 0
	case q.Exact:
		return name == q.Pattern
	}
	return strings.Contains(name, q.Pattern)
}

// judgeLanguage takes a shard that names no language for one that does not
// tell, not for one without any.
func judgeLanguage(q *query.Language, ref *catalogv1.ShardRef) verdict {
	if q.Name == "" || len(ref.Languages) == 0 || slices.Contains(ref.Languages, q.Name) {
		return maybe
	}
	return none
}
