package indextest

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

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
	var results []Result
	for i := range c.Repos {
		for j := range c.Repos[i].Documents {
			d := document{&c.Repos[i], &c.Repos[i].Documents[j]}
			if o.holds(q, d) {
				results = append(results, o.result(q, d))
			}
		}
	}
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

type document struct {
	*Repo
	*Document
}

// oracle evaluates one query.
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

// holds tells whether the document matches.
func (o *oracle) holds(q query.Q, d document) bool {
	switch q := q.(type) {
	case *query.And:
		return !slices.ContainsFunc(q.Children, func(c query.Q) bool { return !o.holds(c, d) })
	case *query.Or:
		return slices.ContainsFunc(q.Children, func(c query.Q) bool { return o.holds(c, d) })
	case *query.Not:
		return !o.holds(q.Child, d)
	case *query.Type:
		return o.holds(q.Child, d)
	case *query.Const:
		return q.Value
	case *query.Substring:
		return o.found(q, q.Scope, d)
	case *query.Regexp:
		return o.found(q, q.Scope, d)
	}
	return o.factHolds(q, d)
}

// factHolds is holds for what does not depend on a text.
func (o *oracle) factHolds(q query.Q, d document) bool {
	switch q := q.(type) {
	case *query.Repo:
		return o.regexps[q].MatchString(d.Name)
	case *query.RepoSet:
		return q.Names[d.Name]
	case *query.Branch:
		return slices.ContainsFunc(d.Document.Branches, func(name string) bool { return onBranch(q, d.Repo, name) })
	case *query.Language:
		return d.Language == q.Name
	case *query.Meta:
		value, ok := d.Meta[q.Key]
		return ok && o.regexps[q].MatchString(value)
	case *query.RepoFact:
		return q.Value == map[query.Fact]bool{
			query.Archived: d.Archived, query.Fork: d.Fork, query.Public: d.Public}[q.Fact]
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

// found tells whether an atom's text is in the content or path, as its scope says.
func (o *oracle) found(atom query.Q, scope query.Scope, d document) bool {
	if scope != query.FileName && !d.Skipped {
		if _, ok := o.find[atom](d.Content); ok {
			return true
		}
	}
	if scope != query.Content {
		_, ok := o.find[atom]([]byte(d.Path))
		return ok
	}
	return false
}

// result collects the ranges of a document that matches.
func (o *oracle) result(q query.Q, d document) Result {
	r := Result{Repo: d.Name, Path: d.Path, Branches: d.Document.Branches}
	if !d.Skipped {
		r.Content = withoutOverlap(o.ranges(q, d, query.Content))
	}
	if len(r.Content) == 0 {
		r.Name = withoutOverlap(o.ranges(q, d, query.FileName))
	}
	return r
}

// ranges gives those of the atoms in the content, or in the path, that count:
// they are not under a Not, and all nodes above them hold.
func (o *oracle) ranges(q query.Q, d document, in query.Scope) []Range {
	if !o.holds(q, d) {
		return nil
	}
	var all []Range
	switch q := q.(type) {
	case *query.And:
		for _, c := range q.Children {
			all = append(all, o.ranges(c, d, in)...)
		}
	case *query.Or:
		for _, c := range q.Children {
			all = append(all, o.ranges(c, d, in)...)
		}
	case *query.Type:
		if q.Kind != query.KindFileName || in == query.FileName {
			all = o.ranges(q.Child, d, in)
		}
	case *query.Substring:
		all = o.atomRanges(q, q.Scope, d, in)
	case *query.Regexp:
		all = o.atomRanges(q, q.Scope, d, in)
	}
	return all
}

func (o *oracle) atomRanges(atom query.Q, scope query.Scope, d document, in query.Scope) []Range {
	text := d.Content
	if in == query.FileName {
		text = []byte(d.Path)
	}
	if scope != query.Either && scope != in {
		return nil
	}
	ranges, _ := o.find[atom](text)
	return ranges
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
