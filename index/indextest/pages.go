package indextest

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/query"
)

// Ask describes the wanted part of an answer.
type Ask struct {
	// TopK asks for the best documents, with counts that may be too low. Without it all matches are counted.
	TopK bool
	// MaxFiles is the most documents, MaxMatches the most ranges of each.
	MaxFiles, MaxMatches int
	// After excludes this document and those before it in the answer.
	After *Result
	// Helpers is the number of other goroutines in the search, if it can be shared.
	Helpers int
}

func (a Ask) String() string {
	s := fmt.Sprintf("{TopK %t, %d files, %d matches, %d helpers", a.TopK, a.MaxFiles, a.MaxMatches, a.Helpers)
	if a.After != nil {
		s += fmt.Sprintf(", after %s %q of score %g", a.After.Repo, a.After.Path, a.After.Score)
	}
	return s + "}"
}

// Page is the visible part of an answer, with the counts.
type Page struct {
	Files []PageFile
	// FilesMatched and Matches count all documents and ranges of the answer, including those on other pages. They
	// are lower bounds if Inexact.
	FilesMatched, Matches uint64
	Inexact               bool
}

// PageFile is a document on a page.
type PageFile struct {
	// Result has only the first ranges, as many as requested.
	Result
	// Matches counts all ranges if all are shown, and otherwise those of each atom.
	Matches int
}

// Pager is an engine that answers in pages.
type Pager struct {
	Name string
	// Page answers a query without type:repo.
	Page func(q query.Q, ask Ask) (Page, error)
}

// everything is more than any corpus has.
const everything = 1 << 30

// CheckPages runs each query on two random engines and compares everything visible with the oracle: documents,
// ranges, scores, order and counts, of the whole answer and of two parts that are requested in different ways. It
// reports like Check.
func CheckPages(t testing.TB, c *Corpus, queries []Query, pagers ...Pager) {
	t.Helper()
	o := NewOracle(c)
	check(t, c, queries, func(q Query) string {
		rng := rand.New(rand.NewPCG(q.Seed, uint64(q.Number)))
		some := slices.Clone(pagers)
		rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		_, diff := o.ComparePages(q, 2, some[:min(2, len(some))]...)
		return diff
	})
}

// ComparePages describes how the engines' answers to one query differ from the oracle's: for the whole answer and
// a few random parts. The text is empty if they are equal. The number of documents found shows how much the
// comparison says.
func (o *Oracle) ComparePages(q Query, parts int, pagers ...Pager) (documents int, diff string) {
	tree, diff := o.parse(q.Text)
	if diff != "" {
		return 0, diff
	}
	want, wantErr := o.Eval(tree)
	slices.SortFunc(want, compareRanked)
	for _, p := range pagers {
		if diff == "" {
			diff = o.comparePager(q, parts, p, tree, want, wantErr)
		}
	}
	return len(want), diff
}

func (o *Oracle) comparePager(q Query, parts int, p Pager, tree query.Q, want []Result, wantErr error) (diff string) {
	rng := rand.New(rand.NewPCG(q.Seed, uint64(q.Number)))
	asks := []Ask{{MaxFiles: everything, MaxMatches: everything, Helpers: rng.IntN(3)}}
	for range parts {
		asks = append(asks, someAsk(rng, want))
	}
	for _, ask := range asks {
		got, gotErr := p.Page(tree, ask)
		if wantErr != nil || gotErr != nil {
			diff = differentErrors(tree, gotErr, wantErr)
		} else {
			diff = o.comparePage(pageOf(want, ask), got, ask)
		}
		if diff != "" {
			return fmt.Sprintf("tree %s\n%s, asked %s: %s", tree, p.Name, ask, diff)
		}
	}
	return ""
}

// someAsk describes a random part of an answer.
func someAsk(rng *rand.Rand, answer []Result) Ask {
	ask := Ask{TopK: rng.IntN(2) == 0, Helpers: rng.IntN(3), MaxFiles: rng.IntN(10), MaxMatches: []int{0, 1, 2, 5, everything}[rng.IntN(5)]}
	if len(answer) > 0 && rng.IntN(2) == 0 {
		ask.After = &answer[rng.IntN(len(answer))]
	}
	return ask
}

// compareRanked is the total order of an answer: higher scores first, then repo, path and object.
func compareRanked(a, b Result) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Path, b.Path), bytes.Compare(a.Object, b.Object))
}

// pageOf returns the page of a sorted answer.
func pageOf(answer []Result, ask Ask) Page {
	p := Page{FilesMatched: uint64(len(answer))}
	for _, r := range answer {
		p.Matches += uint64(r.Matches)
		if ask.After != nil && compareRanked(r, *ask.After) <= 0 || len(p.Files) == ask.MaxFiles {
			continue
		}
		f := PageFile{Result: r, Matches: r.Matches}
		if all := len(r.Content) + len(r.Name); all < ask.MaxMatches {
			f.Matches = all
		}
		f.Name = f.Name[:min(len(f.Name), ask.MaxMatches)] // content: see Shows
		p.Files = append(p.Files, f)
	}
	return p
}

func (o *Oracle) comparePage(want, got Page, ask Ask) string {
	for i := range max(len(want.Files), len(got.Files)) {
		switch {
		case i == len(got.Files):
			return fmt.Sprintf("%d files, should be %d; missing: %s", i, len(want.Files), describe(o.corpus, want.Files[i].Result))
		case i == len(want.Files):
			return fmt.Sprintf("%d files, should be %d; too much: %s", len(got.Files), i, describe(o.corpus, got.Files[i].Result))
		}
		if w, g := want.Files[i], got.Files[i]; !sameFile(w, g, ask.MaxMatches) {
			return fmt.Sprintf("file %d is %s, %d matches, score %g, object %x\n   should be %s, %d matches, score %g, object %x", i,
				describe(o.corpus, g.Result), g.Matches, g.Score, g.Object, describe(o.corpus, w.Result), w.Matches, w.Score, w.Object)
		}
	}
	exact := got.FilesMatched == want.FilesMatched && got.Matches == want.Matches
	lower := got.FilesMatched <= want.FilesMatched && got.Matches <= want.Matches
	if !exact && !(ask.TopK && lower && got.Inexact) || !ask.TopK && got.Inexact {
		return fmt.Sprintf("counts %d files, %d matches (inexact: %t), should be %d and %d",
			got.FilesMatched, got.Matches, got.Inexact, want.FilesMatched, want.Matches)
	}
	return ""
}

// sameFile reports whether b is what a page shows of a. All ranges of a are known.
func sameFile(a, b PageFile, most int) bool {
	return compareResults(a.Result, b.Result) == 0 && bytes.Equal(a.Object, b.Object) && a.Matches == b.Matches &&
		math.Float64bits(a.Score) == math.Float64bits(b.Score) && Shows(a.Content, b.Content, most) && slices.Equal(a.Name, b.Name)
}

// Shows reports whether shown are some of all ranges of a file, in their order: as many as the limit allows, or fewer if there are more than
// that and some are of a letter or two, which may not be marked.
func Shows(all, shown []Range, most int) bool {
	if len(all) <= most {
		return slices.Equal(all, shown)
	}
	short := slices.ContainsFunc(all, func(r Range) bool { return r.End-r.Start <= 2 })
	if len(shown) > most || len(shown) < most && !short {
		return false
	}
	for _, r := range all {
		if len(shown) > 0 && shown[0] == r {
			shown = shown[1:]
		}
	}
	return len(shown) == 0
}
