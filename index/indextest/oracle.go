package indextest

import (
	"cmp"
	"errors"
	"regexp"
	"runtime"
	"slices"
	"sync"

	"github.com/trawl-search/trawl/index/query"
)

// Range is the bytes from Start up to but excluding End.
type Range struct{ Start, End int }

// Result is a document that a query matches, with its ranges.
type Result struct {
	Repo     string
	Path     string
	Branches []string
	// Content are the ranges in the content. If there are none, Name are those in the path. Both are
	// ascending, non-empty and without overlap.
	Content, Name []Range
	// Object is the Git object id, which orders documents at one path.
	Object []byte
	// Score is the score that package rank gives.
	Score float64
	// Matches is the number of ranges of all atoms in the content, or in the path if there are none. Those that overlap count, too.
	Matches int
}

// Oracle answers queries on a corpus, which must not change. It keeps what it computes from the texts,
// to answer later queries faster. It is safe for concurrent use.
type Oracle struct {
	corpus    *Corpus
	documents []*document
}

// NewOracle makes an oracle for the corpus.
func NewOracle(c *Corpus) *Oracle {
	o := &Oracle{corpus: c}
	for i := range c.Repos {
		for j := range c.Repos[i].Documents {
			o.documents = append(o.documents, newDocument(&c.Repos[i], &c.Repos[i].Documents[j]))
		}
	}
	return o
}

// Eval returns what the query must find in the corpus, in order of repo, path and branches. The error is
// query.ErrUnresolved if the query has a type:repo that Resolve has not replaced.
func (o *Oracle) Eval(q query.Q) ([]Result, error) {
	c, err := compile(q)
	if err != nil {
		return nil, err
	}
	workers := runtime.GOMAXPROCS(0)
	parts := make([][]Result, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			known := make([]finding, len(c.find)*2)
			for i := w; i < len(o.documents); i += workers {
				clear(known)
				e := evaluation{c, o.documents[i], known}
				if e.holds(q) {
					parts[w] = append(parts[w], e.result(q))
				}
			}
		})
	}
	all.Wait()
	results := slices.Concat(parts...)
	sortResults(results)
	return results, nil
}

// Eval is Oracle.Eval with a new Oracle.
func Eval(c *Corpus, q query.Q) ([]Result, error) { return NewOracle(c).Eval(q) }

// Resolve replaces each type:repo by the repos in which its child finds something.
func (o *Oracle) Resolve(q query.Q) (query.Q, error) {
	return query.ResolveRepos(q, func(child query.Q) ([]string, error) {
		results, err := o.Eval(child)
		var names []string
		for _, r := range results {
			names = append(names, r.Repo)
		}
		return slices.Compact(names), err
	})
}

// Resolve is Oracle.Resolve with a new Oracle.
func Resolve(c *Corpus, q query.Q) (query.Q, error) { return NewOracle(c).Resolve(q) }

func sortResults(results []Result) { slices.SortFunc(results, compareResults) }

// compareResults orders by what identifies a document.
func compareResults(a, b Result) int {
	return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Path, b.Path), slices.Compare(a.Branches, b.Branches))
}

// compiled is a compiled query. It is safe for concurrent use.
type compiled struct {
	find    []finder        // by Substring and Regexp
	atoms   map[query.Q]int // their indexes in find
	regexps map[query.Q]*regexp.Regexp
}

func compile(q query.Q) (*compiled, error) {
	c := &compiled{atoms: map[query.Q]int{}, regexps: map[query.Q]*regexp.Regexp{}}
	var errs []error
	query.Walk(q, func(n query.Q) bool {
		errs = append(errs, c.prepare(n))
		return true
	})
	return c, errors.Join(errs...)
}

func (c *compiled) atom(n query.Q, f finder) {
	c.atoms[n] = len(c.find)
	c.find = append(c.find, f)
}

// prepare compiles what a node needs. The standard library writes the source of an expression here, not
// the package that the engine uses.
func (c *compiled) prepare(n query.Q) (err error) {
	switch n := n.(type) {
	case *query.Substring:
		c.atom(n, substring(n.Pattern, n.CaseSensitive))
	case *query.Regexp:
		source := n.Tree.String()
		if !n.CaseSensitive {
			source = "(?i)" + source
		}
		re, err := regexp.Compile(source)
		c.atom(n, expression(re))
		return err
	case *query.Repo:
		c.regexps[n], err = regexp.Compile(n.Tree.String())
	case *query.Meta:
		c.regexps[n], err = regexp.Compile(n.Tree.String())
	case *query.Symbol:
		err = c.prepare(n.Child)
		c.atom(n, inNames(c.find[len(c.find)-1], n.Kinds))
	case *query.Reference:
		err = c.prepare(n.Child)
		c.atom(n, outsideNames(c.find[len(c.find)-1]))
	case *query.Type:
		if n.Kind == query.KindRepo {
			return query.ErrUnresolved
		}
	}
	return err
}
