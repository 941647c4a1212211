package shard

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
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
	// ByBranch counts a document once for each branch that holds it.
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
	opts = Options{Repos: opts.Repos, Overlays: opts.Overlays}
	err := s.with(ctx, opts, func(run *search) error {
		err := run.count(q, by, counted.Facets)
		if err != nil && isContextError(err) {
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

// facetCounter counts documents of a shard by the numbers of their values in it.
type facetCounter struct {
	repos     map[int]uint64
	languages map[uint16]uint64
	folders   map[int]map[string]uint64 // by repo
	branches  map[int]map[uint32]uint64 // by repo
}

func (s *search) count(q *Query, by []Facet, counts []FacetCounts) error {
	s.announceTables(q)
	if err := s.begin(q); err != nil {
		return err
	}
	c := facetCounter{map[int]uint64{}, map[uint16]uint64{}, map[int]map[string]uint64{}, map[int]map[uint32]uint64{}}
	_, err := s.scan(0, s.content.Blobs(), never, func() error {
		for _, f := range by {
			if err := c.add(&s.doc, f); err != nil {
				return err
			}
		}
		return nil
	})
	for i, f := range by {
		if failed := s.name(&c, f, &counts[i]); failed != nil {
			return failed
		}
	}
	return err
}

// add counts a document.
func (c *facetCounter) add(d *document, by Facet) error {
	switch by {
	case ByRepo:
		c.repos[d.repo]++
	case ByLanguage:
		id, err := d.s.docs.LanguageID(d.id)
		if err != nil {
			return err
		}
		c.languages[id]++
	case ByFolder:
		path, err := d.loadPath()
		if err != nil {
			return err
		}
		inRepo(c.folders, d.repo)[string(path[:bytes.LastIndexByte(path, '/')+1])]++
	case ByBranch:
		branches, err := d.loadBranches()
		if err != nil {
			return err
		}
		for _, b := range branches {
			inRepo(c.branches, d.repo)[b]++
		}
	}
	return nil
}

func inRepo[K comparable](counts map[int]map[K]uint64, repo int) map[K]uint64 {
	of := counts[repo]
	if of == nil {
		of = make(map[K]uint64)
		counts[repo] = of
	}
	return of
}

// name adds the counts by number to those by name.
func (s *search) name(c *facetCounter, by Facet, counts *FacetCounts) error {
	for id, n := range c.languages {
		if by != ByLanguage {
			break
		}
		name, err := s.docs.LanguageName(id)
		if err != nil {
			return err
		}
		counts.Add(FacetValue{Name: name}, n)
	}
	for i := range s.docs.Repos() {
		if c.repos[i] == 0 && c.folders[i] == nil && c.branches[i] == nil {
			continue
		}
		repo, err := s.docs.RepoName(i)
		if err != nil {
			return err
		}
		switch by {
		case ByRepo:
			counts.Add(FacetValue{Repo: repo}, c.repos[i])
		case ByFolder:
			for _, folder := range slices.Sorted(maps.Keys(c.folders[i])) {
				counts.Add(FacetValue{repo, folder}, c.folders[i][folder])
			}
		case ByBranch:
			view, err := s.branchesNow(i)
			if err != nil {
				return err
			}
			for b, n := range c.branches[i] {
				counts.Add(FacetValue{Name: view.now[b].Name}, n)
			}
		}
	}
	return nil
}
