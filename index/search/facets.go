package search

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Facet is a property by which documents can be counted.
type Facet uint8

// Facets of documents.
const (
	ByRepo Facet = iota
	ByLanguage
	// ByFolder is the folder that holds the document directly, not a parent of it.
	ByFolder
	// ByBranch counts a document once for each branch that FileMatch.Branches has.
	ByBranch
)

// FacetValue is a value of a facet: a repo; a language or branch by its name; or a folder of a repo,
// with a slash at its end.
type FacetValue struct{ Repo, Name string }

// FacetCount is how many documents have a value.
type FacetCount struct {
	FacetValue
	Documents uint64
}

// Bounds on the values of a facet that are counted apart: their number, and the bytes of their names.
const (
	maxFacetValues = 10_000
	maxFacetBytes  = 256 << 10
)

// FacetCounts counts documents by one facet. The zero value is empty. It is not safe for concurrent use.
type FacetCounts struct {
	counts map[FacetValue]uint64
	bytes  int
	// NotCounted counts the documents for whose values there was no room. If there are any, the other counts
	// are lower bounds.
	NotCounted uint64
}

// Add counts documents with a value.
func (c *FacetCounts) Add(v FacetValue, documents uint64) {
	if _, known := c.counts[v]; !known {
		size := len(v.Repo) + len(v.Name)
		if len(c.counts) == maxFacetValues || c.bytes+size > maxFacetBytes {
			c.NotCounted += documents
			return
		}
		if c.counts == nil {
			c.counts = make(map[FacetValue]uint64)
		}
		c.bytes += size
	}
	c.counts[v] += documents
}

// Merge adds the counts of another.
func (c *FacetCounts) Merge(o *FacetCounts) {
	for _, v := range o.Values() {
		c.Add(v.FacetValue, v.Documents)
	}
	c.NotCounted += o.NotCounted
}

// Values returns the counts, most documents first, then by repo and name.
func (c *FacetCounts) Values() []FacetCount {
	values := make([]FacetCount, 0, len(c.counts))
	for v, n := range c.counts {
		values = append(values, FacetCount{v, n})
	}
	slices.SortFunc(values, func(a, b FacetCount) int {
		return cmp.Or(cmp.Compare(b.Documents, a.Documents), strings.Compare(a.Repo, b.Repo), strings.Compare(a.Name, b.Name))
	})
	return values
}

// Counted is what Count has counted in a shard.
type Counted struct {
	// Facets in the order in which they were asked for.
	Facets []FacetCounts
	// Stats say what counting took. They do not count matches.
	Stats Stats
	// Incomplete is nil when the whole shard was searched; otherwise it is why not (a context's error).
	Incomplete error
}

// Count counts all documents that q matches, by facets. Of the options it uses Repos and Overlays. Its errors
// are those of Search.
func (s *Shard) Count(ctx context.Context, q *Query, opts Options, by []Facet) (*Counted, error) {
	counted := &Counted{Facets: make([]FacetCounts, len(by))}
	opts = Options{Repos: opts.Repos, Overlays: opts.Overlays, branches: q.branches}
	err := s.with(ctx, q, opts, func(run *search) error {
		err := run.count(by, counted.Facets)
		if isContextError(err) {
			counted.Incomplete, err = err, nil
		}
		run.countReads()
		counted.Stats = run.stats
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count in shard %s: %w", s.Name(), err)
	}
	return counted, nil
}

func (s *search) count(by []Facet, counts []FacetCounts) error {
	languages := map[uint16]string{}
	return s.scan(func() error {
		for i := range by {
			if err := s.countDocument(by[i], &counts[i], languages); err != nil {
				return err
			}
		}
		return nil
	})
}

// countDocument counts the current document. It keeps the names of languages that it looks up.
func (s *search) countDocument(by Facet, counts *FacetCounts, languages map[uint16]string) error {
	switch by {
	case ByLanguage:
		id, err := s.docs.LanguageID(s.doc.id)
		if err != nil {
			return err
		}
		name, known := languages[id]
		if !known {
			if name, err = s.docs.LanguageName(id); err != nil {
				return err
			}
			languages[id] = name
		}
		counts.Add(FacetValue{Name: name}, 1)
	case ByBranch:
		branches, view, err := s.selectedBranches()
		if err != nil {
			return err
		}
		for _, b := range branches {
			counts.Add(FacetValue{Name: view.now[b].Name}, 1)
		}
	default:
		repo, err := s.repo(s.doc.repo)
		if err != nil {
			return err
		}
		v := FacetValue{Repo: repo.Name}
		if by == ByFolder {
			path, err := s.doc.loadPath()
			if err != nil {
				return err
			}
			v.Name = string(path[:bytes.LastIndexByte(path, '/')+1])
		}
		counts.Add(v, 1)
	}
	return nil
}
