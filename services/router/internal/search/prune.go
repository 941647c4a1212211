package search

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// verdict says which documents of one repo in one shard match, as far as the root
// shows.
type verdict int8

const (
	none  verdict = -1 // none of them matches
	maybe verdict = 0
	all   verdict = 1 // each of them matches
)

// facts are what a query is evaluated for: all repos of a chunk or one of them, in all its shards or in one.
type facts struct {
	chunk *chunk
	// repo is one of the chunk if place is not 0, which is its place in the chunk, from 1.
	repo  catalog.Record
	place int
	// in is a shard, if one is meant and all may be known of it.
	in speaker
}

// speaker is what a root, or all of a chunk, say of a shard.
type speaker interface {
	Speaks(language string) (speaks, known bool)
}

// evaluator evaluates a query.
type evaluator func(*facts) verdict

// lookEvery is the number of repos, of shards, or of chunks without a look at their repos, between two looks at the deadline.
const lookEvery = 16

// expressions are the compiled repo: of one query, whose rounds share them. They are for one goroutine.
type expressions struct {
	// memory is that of their automata; without it there is no bound.
	memory *regex.Memory
	of     map[*query.Repo]*expression
}

func newExpressions(memory *regex.Memory) expressions {
	return expressions{memory: memory, of: make(map[*query.Repo]*expression)}
}

// expression is a compiled repo:.
type expression struct {
	matcher regex.Matcher
	// need is what matching names have.
	need need
	// chunk and place are those of the repo that was looked at last, and matched whether it matches.
	chunk   *chunk
	place   int
	name    []byte
	matched bool
}

func (e *expression) evaluate(f *facts) verdict {
	if f.place == 0 {
		if f.chunk.mayMeet(&e.need) {
			return maybe
		}
		return none
	}
	if f.chunk != e.chunk || f.place != e.place {
		e.chunk, e.place, e.matched = f.chunk, f.place, e.need.metBy(f.repo.Repo)
		if e.matched {
			e.name = append(e.name[:0], f.repo.Repo...)
			_, _, e.matched = e.matcher.Find(e.name, 0)
		}
	}
	return exactly(e.matched)
}

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
	marks := make([]bool, pageShards*len(l.table.pages))
	byRepo, f, open := looksAtRepos(q), &facts{}, []uint32(nil)
	for i, c := range l.chunks {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("plan query: %w", ctx.Err())
		}
		if *f = (facts{chunk: c}); evaluate(f) == none {
			continue
		}
		if open, err = l.openIn(ctx, open[:0], f, evaluate, marks); err == nil && byRepo {
			err = l.markIn(ctx, f, evaluate, open, marks)
		}
		if err != nil {
			return nil, fmt.Errorf("plan query: %w", err)
		}
		if !byRepo {
			for _, n := range open {
				marks[n] = true
			}
		}
	}
	for n, marked := range marks {
		if marked {
			wanted = append(wanted, l.table.at(uint32(n)).all)
		}
	}
	return wanted, nil
}

// openIn appends the shards of the layout without a mark in which repos of the chunk may match. The error is that of ctx.
func (l *Layout) openIn(ctx context.Context, open []uint32, f *facts, evaluate evaluator, marks []bool) ([]uint32, error) {
	for i, n := range f.chunk.shards {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s := l.table.at(n)
		if s == nil || marks[n] {
			continue
		}
		if f.in = nil; !l.hides(s) {
			f.in = inChunk{f.chunk, i}
		}
		if evaluate(f) != none {
			open = append(open, n)
		}
	}
	return open, nil
}

// inChunk is a shard with all repos of a chunk that are in it.
type inChunk struct {
	chunk *chunk
	shard int
}

// Speaks implements speaker.
func (c inChunk) Speaks(language string) (speaks, known bool) {
	return c.chunk.roots.Summary().Shards[c.shard].Speaks(language)
}

// markIn marks those of the open shards of a chunk in which a repo may match. The error is that of ctx.
func (l *Layout) markIn(ctx context.Context, f *facts, evaluate evaluator, open []uint32, marks []bool) error {
	var held []catalog.Held
	for i, r := range f.chunk.roots.All() {
		if len(open) == 0 {
			return nil
		}
		if i%lookEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if f.repo, f.place, f.in = r, i+1, nil; !f.chunk.has(i) || evaluate(f) == none {
			continue
		}
		held = r.Shards(held[:0])
		for _, h := range held {
			n := f.chunk.shards[h.Shard]
			at := slices.Index(open, n)
			if at < 0 {
				continue
			}
			if f.in = nil; !l.hides(l.table.at(n)) {
				f.in = h
			}
			if evaluate(f) != none {
				marks[n], open = true, slices.Delete(open, at, at+1)
			}
		}
	}
	return nil
}

// eachRepo passes the repos after a name that a query may match by their roots to do, in order, until that returns false. The error
// is that of ctx.
func (l *Layout) eachRepo(ctx context.Context, after string, evaluate evaluator, do func(*chunk, catalog.Record) bool) error {
	f := &facts{}
	for i, c := range l.chunksAfter(after) {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if *f = (facts{chunk: c}); c.n == 0 || evaluate(f) == none {
			continue
		}
		for i, r := range c.roots.All() {
			if i%lookEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if f.repo, f.place = r, i+1; r.Repo > after && c.has(i) && evaluate(f) != none && !do(c, r) {
				return nil
			}
		}
	}
	return nil
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

// looksAtRepos reports whether only the repos of a chunk decide the query: it has another atom than a language, or several languages, which
// different repos may have. What a chunk as a whole decides would then depend on which repos share it, hidden ones among them.
func looksAtRepos(q query.Q) (some bool) {
	languages := 0
	query.Walk(q, func(n query.Q) bool {
		switch n := n.(type) {
		case *query.Language:
			languages++
			some = some || languages > 1
		case *query.Repo, *query.RepoSet, *query.Branch:
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
		return func(f *facts) verdict { return -child(f) }, err
	case *query.Type:
		if q.Kind != query.KindRepo {
			return x.compile(q.Child)
		}
	case *query.Const:
		return constant(exactly(q.Value)), nil
	case *query.Repo:
		return x.compileRepo(q)
	case *query.RepoSet:
		return evaluateSet(q), nil
	case *query.Branch:
		var names []string
		return func(f *facts) verdict {
			if f.place == 0 {
				return evaluateBranches(q, f.chunk.roots.Summary())
			}
			names = f.repo.Branches(names[:0])
			return evaluateBranch(q, names)
		}, nil
	case *query.Language:
		return func(f *facts) verdict {
			if f.in == nil {
				return maybe
			}
			return evaluateLanguage(q, f.in)
		}, nil
	}
	// Only the shard knows text, symbols and the facts of a repo.
	return constant(maybe), nil
}

func constant(v verdict) evaluator {
	return func(*facts) verdict { return v }
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
	return func(f *facts) verdict {
		v := start
		for _, e := range evaluators {
			if v = combine(v, e(f)); v == -start {
				break // no other can change it
			}
		}
		return v
	}, nil
}

func (x expressions) compileRepo(q *query.Repo) (evaluator, error) {
	e := x.of[q]
	if e == nil {
		matcher, err := regex.NewMatcherIn(x.memory, q.Tree, true)
		if err != nil {
			return nil, fmt.Errorf("compile the expression of repo: %w", err)
		}
		needs, err := regex.Analyze(q.Tree, true)
		if err != nil {
			return nil, err
		}
		e = &expression{matcher: matcher, need: needOf(needs)}
		x.of[q] = e
	}
	return e.evaluate, nil
}

// evaluateSet looks at chunks between whose first and last repo the set has a name.
func evaluateSet(q *query.RepoSet) evaluator {
	names := slices.Sorted(maps.Keys(q.Names))
	return func(f *facts) verdict {
		if f.place > 0 {
			return exactly(q.Names[f.repo.Repo])
		}
		i, _ := slices.BinarySearch(names, f.chunk.roots.First())
		return min(maybe, exactly(i < len(names) && names[i] <= f.chunk.roots.Last()))
	}
}

// evaluateBranch uses that every document is on some branch of its repo. A root without
// branches decides nothing.
func evaluateBranch(q *query.Branch, names []string) verdict {
	if len(names) == 0 {
		return maybe
	}
	matching := 0
	for i, name := range names {
		if q.Matches(name, i) {
			matching++
		}
	}
	switch matching {
	case 0:
		return none
	case len(names):
		return all
	}
	return maybe
}

// evaluateBranches looks for a branch at any place of a repo.
func evaluateBranches(q *query.Branch, of *catalog.Summary) verdict {
	if of.Unnamed || slices.ContainsFunc(of.Branches, func(name string) bool { return q.Matches(name, 0) || q.Matches(name, 1) }) {
		return maybe
	}
	return none
}

// evaluateLanguage treats a shard that names no languages as unknown.
func evaluateLanguage(q *query.Language, in speaker) verdict {
	if speaks, known := in.Speaks(q.Name); speaks || !known {
		return maybe
	}
	return none
}
