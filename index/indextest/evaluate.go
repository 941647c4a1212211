package indextest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/symbols"
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
		content: text{bytes: d.Content, language: d.Language}, path: text{bytes: []byte(d.Path)},
	}
}

// evaluation evaluates a query on one document. It looks for each atom once in the content and once in the
// path.
type evaluation struct {
	*compiled
	*document
	known []finding // of each atom, in the content and in the path
}

type finding struct {
	ranges       []Range
	found, asked bool
}

// look returns what it finds of an atom in the content or in the path. Skipped documents have no content.
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
	}
	if scope, ok := scopeOf(q); ok {
		return scope != query.FileName && e.look(q, query.Content).found || scope != query.Content && e.look(q, query.FileName).found
	}
	return e.factHolds(q)
}

// scopeOf returns the scope of an atom; ok is false for other nodes.
func scopeOf(q query.Q) (scope query.Scope, ok bool) {
	switch q := q.(type) {
	case *query.Substring:
		return q.Scope, true
	case *query.Regexp:
		return q.Scope, true
	case *query.Symbol, *query.Reference:
		return query.Content, true
	}
	return 0, false
}

// factHolds is holds for nodes without a text.
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

// selected returns the document's branches that a Branch outside of a Not matches, or all if none does.
func (e evaluation) selected(q query.Q) (names []string) {
	for _, name := range e.Document.Branches {
		some := false
		query.WalkShown(q, func(q query.Q) {
			b, ok := q.(*query.Branch)
			some = some || ok && onBranch(b, e.Repo, name)
		})
		if some {
			names = append(names, name)
		}
	}
	if names == nil {
		return e.Document.Branches
	}
	return names
}

// result collects the ranges of a document that matches.
func (e evaluation) result(q query.Q) Result {
	r := Result{Repo: e.Name, Path: e.Path, Branches: e.selected(q), Object: e.object()}
	content, name := e.ranges(q, query.Content), e.ranges(q, query.FileName)
	if r.Content, r.Matches = withoutOverlap(content), len(content); len(content) == 0 {
		r.Name, r.Matches = withoutOverlap(name), len(name)
	}
	features := e.features(q, name)
	r.Score = features.Score()
	return r
}

// features returns the inputs of the score.
func (e evaluation) features(q query.Q, name []Range) rank.Document {
	d := rank.Document{LowPriority: rank.LowPriority([]byte(e.Path)) && !asksForLow(q), Length: (len(e.Content) + rank.LengthUnit - 1) / rank.LengthUnit}
	base := strings.LastIndexByte(e.Path, '/') + 1
	covered := make([]bool, len(e.Path))
	for _, r := range name {
		if r.Start >= base {
			for i := r.Start; i < r.End; i++ {
				covered[i] = true
			}
		}
	}
	d.Terms = e.terms(q, false)
	d.Spelled = !hasLoose(q) && rank.Spells([]byte(e.Path), func(at int) bool { return covered[at] })
	d.Compound, d.CompoundDefined = e.compound(q)
	d.Together, d.RepoRank = e.together(q), e.Rank
	return d
}

// hasLoose reports whether the query has a match:any outside of a Not.
func hasLoose(q query.Q) (loose bool) {
	query.WalkShown(q, func(q query.Q) {
		or, ok := q.(*query.Or)
		loose = loose || ok && or.Words != nil
	})
	return loose
}

// asksForLow reports whether a text outside of a Not asks for documents of low priority.
func asksForLow(q query.Q) (asks bool) {
	query.WalkShown(q, func(q query.Q) {
		s, ok := q.(*query.Substring)
		asks = asks || ok && rank.AsksForLow(s.Pattern)
	})
	return asks
}

// terms says how the atoms with a range match. It counts atoms outside of a Not that hold together with all
// nodes above them. namesOnly excludes the content.
func (e evaluation) terms(q query.Q, namesOnly bool) (terms []rank.Term) {
	if !e.holds(q) {
		return nil
	}
	var children []query.Q
	switch q := q.(type) {
	case *query.And:
		children = q.Children
	case *query.Or:
		for i, c := range q.Children {
			found := e.terms(c, namesOnly)
			switch c.(type) {
			case *query.Substring, *query.Regexp:
				if q.Words != nil && len(found) > 0 {
					found[0].Loose, found[0].Defined = rank.NewLooseWord(q.Words[i]), false
				}
			}
			terms = append(terms, found...)
		}
		return terms
	case *query.Type:
		return e.terms(q.Child, namesOnly || q.Kind == query.KindFileName)
	case *query.Substring, *query.Regexp, *query.Symbol, *query.Reference:
		var t rank.Term
		if !namesOnly {
			content := e.ranges(q, query.Content)
			if s, ok := q.(*query.Substring); ok && len(content) > 0 {
				t.Defined = e.defines(s)
			}
			var counts rank.Counts
			for _, r := range content {
				counts.Add(rank.Of(e.Content, r.Start, r.End))
			}
			t.Content, t.Matches = counts.Best((len(e.Content) + rank.LengthUnit - 1) / rank.LengthUnit)
		}
		for _, r := range e.ranges(q, query.FileName) {
			t.Name = max(t.Name, rank.OfName([]byte(e.Path), r.Start, r.End))
		}
		if t == (rank.Term{}) {
			return nil
		}
		return []rank.Term{t}
	}
	for _, c := range children {
		terms = append(terms, e.terms(c, namesOnly)...)
	}
	return terms
}

// defines reports whether a pattern is a word that the content defines outside of opaque superblocks.
func (e evaluation) defines(s *query.Substring) bool {
	same := func(word string) bool { return word == s.Pattern }
	if !s.CaseSensitive {
		pattern := strings.NewReplacer("\u212A", "k", "\u017F", "s").Replace(s.Pattern)
		same = func(word string) bool { return strings.EqualFold(word, pattern) }
	}
	for _, symbol := range symbols.For(e.Language).Append(nil, e.Content) {
		if e.hasWord(int(symbol.Start), int(symbol.End), same) {
			return true
		}
	}
	return false
}

// compound reports whether the content has a name that the words of the query make up, and whether it defines
// one.
func (e evaluation) compound(q query.Q) (some, defined bool) {
	var words []string
	for _, s := range bareTexts(q) {
		words = append(words, s.Pattern)
	}
	for _, name := range rank.Compounds(words) {
		same := func(word string) bool { return strings.EqualFold(word, name) }
		some = some || e.hasWord(0, len(e.Content), same)
		defined = defined || e.defines(&query.Substring{Pattern: name})
	}
	return some, defined
}

// hasWord reports whether a word for which same is true starts in a part of the content, outside of opaque
// superblocks.
func (e evaluation) hasWord(from, to int, same func(word string) bool) bool {
	if e.Skipped {
		return false
	}
	for at := from; at < to; at++ {
		if !ngram.IsWord(e.Content[at]) || at > 0 && ngram.IsWord(e.Content[at-1]) {
			continue
		}
		end := at
		for end < len(e.Content) && ngram.IsWord(e.Content[end]) {
			end++
		}
		if same(string(e.Content[at:end])) && !slices.Contains(ngram.AppendOpaque(nil, e.Content), uint32(at/ngram.SuperblockSize)) {
			return true
		}
	}
	return false
}

// ranges returns the ranges of the atoms that count, in the content or in the path: atoms outside of a Not
// that hold together with all nodes above them.
func (e evaluation) ranges(q query.Q, in query.Scope) (all []Range) {
	query.Walk(q, func(q query.Q) bool {
		if t, ok := q.(*query.Type); !e.holds(q) || ok && t.Kind == query.KindFileName && in != query.FileName {
			return false
		}
		if scope, ok := scopeOf(q); ok && (scope == query.Either || scope == in) {
			all = append(all, e.look(q, in).ranges...)
		}
		return true
	})
	return all
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
