package search

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// verdict says which documents of one repo in one shard match, as far as the root
// shows.
type verdict int8

const (
	none  verdict = -1 // none of them matches
	maybe verdict = 0
	all   verdict = 1 // each of them matches
)

// evaluator evaluates a query for one repo in one shard.
type evaluator func(root *catalogv1.Root, ref *catalogv1.ShardRef) verdict

// lookEvery is the number of repos between two looks at the deadline.
const lookEvery = 16

// expressions are the compiled repo: of one query, whose rounds share them.
type expressions map[*query.Repo]*expression

// expression is a compiled repo:.
type expression struct {
	re *regexp.Regexp
	// literal begins each match.
	literal string
	// absent is true while the evaluated repos are known not to have the literal in their names.
	absent bool
}

// candidates prepares for evaluating the repos of a chunk. There are none if the query cannot match in any of them.
func (x expressions) candidates(c *chunk, evaluate evaluator) []*catalogv1.Root {
	for _, e := range x {
		e.absent = !strings.Contains(c.text, e.literal)
	}
	if evaluate(&anyRoot, &unknownRef) == none {
		return nil
	}
	return c.roots
}

// anyRoot stands for each root of a chunk.
var anyRoot catalogv1.Root

// selectWith returns the shards that the query must search; it cannot match in the others.
// The caller must not change them. An unresolved type:repo prunes nothing. It adds the
// expressions that it compiles to compiled. The error is that of ctx, or names the
// expression that cannot be compiled.
func (l *Layout) selectWith(ctx context.Context, q query.Q, compiled expressions) (wanted []searchapi.Shard, err error) {
	if !prunes(q) {
		return l.All(), nil
	}
	evaluate, err := compiled.compile(q)
	if err != nil {
		return nil, fmt.Errorf("plan query: %w", err)
	}
	filter := uint64(0)
	if key, ok := filterKey(q, l.Partial); ok {
		filter = l.choices.number(key)
	}
	marks := make([]bool, pageShards*len(l.table.pages))
	looked := 0
	for _, c := range l.chunks {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("plan query: %w", ctx.Err())
		}
		shards, known := c.choice(filter)
		if !known {
			for i, root := range compiled.candidates(c, evaluate) {
				if looked++; looked%lookEvery == 0 && ctx.Err() != nil {
					return nil, fmt.Errorf("plan query: %w", ctx.Err())
				}
				for _, s := range c.of(i) {
					if !slices.Contains(shards, s.shard) && evaluate(root, l.refFor(s)) != none {
						shards = append(shards, s.shard)
					}
				}
			}
			c.choose(filter, shards)
		}
		for _, n := range shards {
			marks[n] = true
		}
	}
	for n, marked := range marks {
		if marked {
			wanted = append(wanted, l.table.at(uint32(n)).all)
		}
	}
	return wanted, nil
}

// unknownRef is the reference to a shard that a caller may not know anything about.
var unknownRef catalogv1.ShardRef

func (l *Layout) refFor(s holding) *catalogv1.ShardRef {
	if l.Partial && l.hides(l.table.at(s.shard)) {
		return &unknownRef
	}
	return s.ref
}

// prunes reports whether the query has an atom that roots alone can refute.
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

func (x expressions) compile(q query.Q) (evaluator, error) {
	switch q := q.(type) {
	case *query.And:
		return x.compileAll(q.Children, all, func(a, b verdict) verdict { return min(a, b) })
	case *query.Or:
		return x.compileAll(q.Children, none, func(a, b verdict) verdict { return max(a, b) })
	case *query.Not:
		child, err := x.compile(q.Child)
		return func(r *catalogv1.Root, s *catalogv1.ShardRef) verdict { return -child(r, s) }, err
	case *query.Type:
		if q.Kind != query.KindRepo {
			return x.compile(q.Child)
		}
	case *query.Const:
		return constant(exactly(q.Value)), nil
	case *query.Repo:
		return x.compileRepo(q)
	case *query.RepoSet:
		return func(r *catalogv1.Root, _ *catalogv1.ShardRef) verdict {
			if r == &anyRoot {
				return maybe
			}
			return exactly(q.Names[r.Repo])
		}, nil
	case *query.Branch:
		return func(r *catalogv1.Root, _ *catalogv1.ShardRef) verdict { return evaluateBranch(q, r) }, nil
	case *query.Language:
		return func(_ *catalogv1.Root, s *catalogv1.ShardRef) verdict { return evaluateLanguage(q, s) }, nil
	}
	// Only the shard knows text, symbols and the facts of a repo.
	return constant(maybe), nil
}

func constant(v verdict) evaluator {
	return func(*catalogv1.Root, *catalogv1.ShardRef) verdict { return v }
}

func exactly(matches bool) verdict {
	if matches {
		return all
	}
	return none
}

func (x expressions) compileAll(children []query.Q, start verdict, combine func(a, b verdict) verdict) (evaluator, error) {
	evaluators := make([]evaluator, len(children))
	for i, c := range children {
		e, err := x.compile(c)
		if err != nil {
			return nil, err
		}
		evaluators[i] = e
	}
	return func(r *catalogv1.Root, s *catalogv1.ShardRef) verdict {
		v := start
		for _, e := range evaluators {
			v = combine(v, e(r, s))
		}
		return v
	}, nil
}

func (x expressions) compileRepo(q *query.Repo) (evaluator, error) {
	e := x[q]
	if e == nil {
		re, err := regex.Compile(q.Tree, true)
		if err != nil {
			return nil, fmt.Errorf("compile the expression of repo: %w", err)
		}
		e = &expression{re: re}
		e.literal, _ = re.LiteralPrefix()
		x[q] = e
	}
	return func(r *catalogv1.Root, _ *catalogv1.ShardRef) verdict {
		if r == &anyRoot && !e.absent {
			return maybe
		}
		return exactly(!e.absent && e.re.MatchString(r.Repo))
	}, nil
}

// evaluateBranch uses that every document is on some branch of its repo. A root without
// branches decides nothing.
func evaluateBranch(q *query.Branch, root *catalogv1.Root) verdict {
	if len(root.Branches) == 0 {
		return maybe
	}
	matching := 0
	for i, b := range root.Branches {
		if q.Matches(b.Name, i) {
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

// evaluateLanguage treats a shard that names no languages as unknown.
func evaluateLanguage(q *query.Language, ref *catalogv1.ShardRef) verdict {
	if len(ref.Languages) == 0 || slices.Contains(ref.Languages, q.Name) {
		return maybe
	}
	return none
}
