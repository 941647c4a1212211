package indextest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
)

type document struct {
	*Repo
	*Document
	content, path text
	object        func() []byte
}

func newDocument(r *Repo, d *Document) *document {
	return &document{
		Repo: r, Document: d, object: sync.OnceValue(d.Object),
		content: text{bytes: d.Content}, path: text{bytes: []byte(d.Path)},
	}
}

// evaluation is that of a query on one document. Each atom is looked for once
// in the content and once in the path.
type evaluation struct {
	*compiled
	*document
	known []finding // of each atom in the content, and in the path
}

type finding struct {
	ranges       []Range
	found, asked bool
}

// look says what is found of an atom in the content or in the path. Skipped
// documents have no content.
func (e evaluation) look(atom query.Q, in query.Scope) finding {
	if in == query.Content && e.Skipped {
		return finding{}
	}
	at, where := 2*e.atoms[atom], &e.content
	if in == query.FileName {
		at, where = at+1, &e.path
	}
	f := &e.known[at]
	if !f.asked {
		f.ranges, f.found = e.find[e.atoms[atom]](where)
		f.asked = true
	}
	return *f
}

// holds reports whether the document matches.
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

// found reports whether an atom's text is where its scope says.
func (e evaluation) found(atom query.Q, scope query.Scope) bool {
	return scope != query.FileName && e.look(atom, query.Content).found ||
		scope != query.Content && e.look(atom, query.FileName).found
}

// result collects the ranges of a document that matches.
func (e evaluation) result(q query.Q) Result {
	r := Result{Repo: e.Name, Path: e.Path, Branches: e.Document.Branches, Object: e.object()}
	content, name := e.ranges(q, query.Content), e.ranges(q, query.FileName)
	features := e.features(q, content, name)
	r.Content = withoutOverlap(content)
	if len(r.Content) == 0 {
		r.Name = withoutOverlap(name)
	}
	features.Matches = r.MatchCount()
	r.Score = features.Score()
	return r
}

// features are what the score is made from, but for the number of matches. All
// ranges count here, also those that others overlap.
func (e evaluation) features(q query.Q, content, name []Range) rank.Document {
	d := rank.Document{LowPriority: rank.LowPriority([]byte(e.Path))}
	for _, r := range content {
		d.Content = max(d.Content, rank.Of(e.Content, r.Start, r.End))
	}
	for _, r := range name {
		d.Name = max(d.Name, rank.OfName([]byte(e.Path), r.Start, r.End))
	}
	d.Matched, d.Atoms = e.count(q, false)
	return d
}

// count says how many of the atoms that hold, together with all nodes above them,
// and are not under a Not, have a range; namesOnly leaves the content out.
func (e evaluation) count(q query.Q, namesOnly bool) (matched, atoms int) {
	if !e.holds(q) {
		return 0, 0
	}
	var children []query.Q
	switch q := q.(type) {
	case *query.And:
		children = q.Children
	case *query.Or:
		children = q.Children
	case *query.Type:
		return e.count(q.Child, namesOnly || q.Kind == query.KindFileName)
	case *query.Substring, *query.Regexp:
		if len(e.ranges(q, query.FileName)) > 0 || !namesOnly && len(e.ranges(q, query.Content)) > 0 {
			return 1, 1
		}
		return 0, 1
	}
	for _, c := range children {
		m, a := e.count(c, namesOnly)
		matched, atoms = matched+m, atoms+a
	}
	return matched, atoms
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
