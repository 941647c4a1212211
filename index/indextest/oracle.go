package indextest

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/trawl-search/trawl/index/query"
)

// Range is a range of bytes, Start included, End not.
type Range struct{ Start, End int }

// Result is a document that a query matches, and what to show of it.
type Result struct {
	Repo     string
	Path     string
	Branches []string
	// Content are the ranges in the content; if there are none, Name are those
	// in the path. Ascending, not empty, without overlap.
	Content, Name []Range
}

// MatchCount is the number of ranges.
func (r Result) MatchCount() int { return len(r.Content) + len(r.Name) }

// Eval says what the query must find in the corpus, in order of repo, path and
// branches. It returns query.ErrNoSymbols if the query asks for symbols, and
// query.ErrUnresolved if it holds a type:repo that Resolve has not replaced.
func Eval(c *Corpus, q query.Q) ([]Result, error) {
	o, err := newOracle(q)
	if err != nil {
		return nil, err
	}
	var documents []document
	for i := range c.Repos {
		for j := range c.Repos[i].Documents {
			documents = append(documents, document{&c.Repos[i], &c.Repos[i].Documents[j]})
		}
	}
	workers := runtime.GOMAXPROCS(0)
	parts := make([][]Result, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < len(documents); i += workers {
				parts[w] = append(parts[w], o.evaluate(q, documents[i])...)
			}
		})
	}
	all.Wait()
	results := slices.Concat(parts...)
	sortResults(results)
	return results, nil
}

// Resolve replaces each type:repo by the repos in which its child finds something.
func Resolve(c *Corpus, q query.Q) (query.Q, error) {
	return query.ResolveRepos(q, func(child query.Q) ([]string, error) {
		results, err := Eval(c, child)
		var names []string
		for _, r := range results {
			names = append(names, r.Repo)
		}
		return slices.Compact(names), err
	})
}

func sortResults(results []Result) { slices.SortFunc(results, compareResults) }

// compareResults orders by what identifies a document.
func compareResults(a, b Result) int {
	return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Path, b.Path), slices.Compare(a.Branches, b.Branches))
}

// oracle holds what is compiled of one query. It may be used concurrently.
type oracle struct {
	find    map[query.Q]finder // of each Substring and Regexp
	regexps map[query.Q]*regexp.Regexp
}

func newOracle(q query.Q) (*oracle, error) {
	o := &oracle{find: map[query.Q]finder{}, regexps: map[query.Q]*regexp.Regexp{}}
	var errs []error
	query.Walk(q, func(n query.Q) bool {
		errs = append(errs, o.prepare(n))
		return true
	})
	return o, errors.Join(errs...)
}

// prepare compiles what a node needs. The source of an expression is written by
// the standard library here, not by the package that the engine uses.
func (o *oracle) prepare(n query.Q) (err error) {
	switch n := n.(type) {
	case *query.Substring:
		o.find[n] = substring(n.Pattern, n.CaseSensitive)
	case *query.Regexp:
		source := n.Tree.String()
		if !n.CaseSensitive {
			source = "(?i)" + source
		}
		re, err := regexp.Compile(source)
		o.find[n] = expression(re)
		return err
	case *query.Repo:
		o.regexps[n], err = regexp.Compile(n.Tree.String())
	case *query.Meta:
		o.regexps[n], err = regexp.Compile(n.Tree.String())
	case *query.Symbol:
		return query.ErrNoSymbols
	case *query.Type:
		if n.Kind == query.KindRepo {
			return query.ErrUnresolved
		}
	}
	return err
}

// evaluate gives the document's result, if it matches.
func (o *oracle) evaluate(q query.Q, d document) []Result {
	e := evaluation{o, d, map[place]finding{}}
	if !e.holds(q) {
		return nil
	}
	return []Result{e.result(q)}
}

type document struct {
	*Repo
	*Document
}

// evaluation is that of a query on one document. Each atom is looked for once
// in the content and once in the path.
type evaluation struct {
	*oracle
	document
	known map[place]finding
}

type place struct {
	atom query.Q
	in   query.Scope // Content or FileName
}

type finding struct {
	ranges []Range
	found  bool
}

// look says what is found of an atom in the content or in the path. Skipped
// documents have no content.
func (e evaluation) look(atom query.Q, in query.Scope) finding {
	if in == query.Content && e.Skipped {
		return finding{}
	}
	f, ok := e.known[place{atom, in}]
	if !ok {
		text := e.Content
		if in == query.FileName {
			text = []byte(e.Path)
		}
		f.ranges, f.found = e.find[atom](text)
		e.known[place{atom, in}] = f
	}
	return f
}

// holds tells whether the document matches.
func (e evaluation) holds(q query.Q) bool {
	switch q := q.(type) {
	case *query.And:
		return !slices.ContainsFunc(q.Children, func(c query.Q) bool { return !e.holds(c) })
	case *query.Or:
		return slices.ContainsFunc(q.Children, e.holds)
	case *query.Not:
		return !e.holds(q.Child)
	case *query.Type:
		return e.holds(q.Child)
	case *query.Const:
		return q.Value
	case *query.Substring:
		return e.found(q, q.Scope)
	case *query.Regexp:
		return e.found(q, q.Scope)
	}
	return e.factHolds(q)
}

// factHolds is holds for what does not depend on a text.
func (e evaluation) factHolds(q query.Q) bool {
	switch q := q.(type) {
	case *query.Repo:
		return e.regexps[q].MatchString(e.Name)
	case *query.RepoSet:
		return q.Names[e.Name]
	case *query.Branch:
		return slices.ContainsFunc(e.Document.Branches, func(name string) bool { return onBranch(q, e.Repo, name) })
	case *query.Language:
		return e.Language == q.Name
	case *query.Meta:
		value, ok := e.Meta[q.Key]
		return ok && e.regexps[q].MatchString(value)
	case *query.RepoFact:
		return q.Value == map[query.Fact]bool{
			query.Archived: e.Archived, query.Fork: e.Fork, query.Public: e.Public}[q.Fact]
	}
	panic(fmt.Sprintf("the oracle does not know %T", q))
}

func onBranch(q *query.Branch, r *Repo, name string) bool {
	switch {
	case q.Pattern == "HEAD":
		return name == r.Branches[0]
	case q.Exact:
		return name == q.Pattern
	}
	return strings.Contains(name, q.Pattern)
}

// found tells whether an atom's text is where its scope says.
func (e evaluation) found(atom query.Q, scope query.Scope) bool {
	return scope != query.FileName && e.look(atom, query.Content).found ||
		scope != query.Content && e.look(atom, query.FileName).found
}

// result collects the ranges of a document that matches.
func (e evaluation) result(q query.Q) Result {
	r := Result{Repo: e.Name, Path: e.Path, Branches: e.Document.Branches}
	r.Content = withoutOverlap(e.ranges(q, query.Content))
	if len(r.Content) == 0 {
		r.Name = withoutOverlap(e.ranges(q, query.FileName))
	}
	return r
}

// ranges gives those of the atoms in the content, or in the path, that count:
// they are not under a Not, and all nodes above them hold.
func (e evaluation) ranges(q query.Q, in query.Scope) []Range {
	if !e.holds(q) {
		return nil
	}
	var all []Range
	switch q := q.(type) {
	case *query.And:
		for _, c := range q.Children {
			all = append(all, e.ranges(c, in)...)
		}
	case *query.Or:
		for _, c := range q.Children {
			all = append(all, e.ranges(c, in)...)
		}
	case *query.Type:
		if q.Kind != query.KindFileName || in == query.FileName {
			all = e.ranges(q.Child, in)
		}
	case *query.Substring:
		all = e.atomRanges(q, q.Scope, in)
	case *query.Regexp:
		all = e.atomRanges(q, q.Scope, in)
	}
	return all
}

func (e evaluation) atomRanges(atom query.Q, scope, in query.Scope) []Range {
	if scope != query.Either && scope != in {
		return nil
	}
	return e.look(atom, in).ranges
}

// withoutOverlap sorts by start, longer first, and drops each range that
// overlaps one kept before it.
func withoutOverlap(ranges []Range) []Range {
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Or(a.Start-b.Start, b.End-a.End) })
	var kept []Range
	for _, r := range ranges {
		if len(kept) == 0 || r.Start >= kept[len(kept)-1].End {
			kept = append(kept, r)
		}
	}
	return kept
}
