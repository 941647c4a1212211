package searchapi

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// selectedValues is how many repos or folders select: lists without count:, maxFacetValues how many it
// can list.
const (
	selectedValues = 1000
	maxFacetValues = 10_000
)

var facets = map[searchv1.Facet]search.Facet{
	searchv1.Facet_FACET_REPO: search.ByRepo, searchv1.Facet_FACET_LANGUAGE: search.ByLanguage,
	searchv1.Facet_FACET_DIRECTORY: search.ByFolder, searchv1.Facet_FACET_BRANCH: search.ByBranch,
}

// ShardFacets are the facets of the options.
func ShardFacets(o *searchv1.SearchOptions) []search.Facet {
	by := make([]search.Facet, len(o.GetFacets()))
	for i, f := range o.GetFacets() {
		by[i] = facets[f]
	}
	return by
}

// ApplyAnswer changes the options, which have their defaults, to what the query says of its answer:
// at most that many files, or a facet in their place, which it returns.
func ApplyAnswer(o *searchv1.SearchOptions, a query.Answer) (selected searchv1.Facet) {
	switch a.Select {
	case query.SelectFiles:
		if a.Count > 0 {
			o.MaxFiles = min(o.MaxFiles, uint32(a.Count))
		}
		return searchv1.Facet_FACET_UNSPECIFIED
	case query.SelectRepos:
		selected = searchv1.Facet_FACET_REPO
	case query.SelectFolders:
		selected = searchv1.Facet_FACET_DIRECTORY
	}
	o.Facets = slices.DeleteFunc(slices.Clone(o.Facets), func(f searchv1.Facet) bool { return f == selected })
	o.Facets = slices.Insert(o.Facets, 0, selected)
	o.CountOnly, o.MaxFacetValues = true, selectedValues
	if a.Count > 0 {
		o.MaxFacetValues = uint32(min(a.Count, maxFacetValues))
	}
	return selected
}

// Facets are counts as messages, each with at most that many values; 0 means no
// bound.
func Facets(by []search.Facet, counts []search.FacetCounts, most int) []*searchv1.FacetCounts {
	messages := make([]*searchv1.FacetCounts, len(by))
	for i, f := range by {
		m := &searchv1.FacetCounts{FilesNotCounted: counts[i].NotCounted}
		for name, facet := range facets {
			if facet == f {
				m.Facet = name
			}
		}
		values := counts[i].Values()
		if most > 0 && len(values) > most {
			m.ValuesLeftOut = uint64(len(values) - most)
			values = values[:most]
		}
		for _, v := range values {
			m.Values = append(m.Values, facetValue(f, v))
		}
		messages[i] = m
	}
	return messages
}

func facetValue(by search.Facet, v search.FacetCount) *searchv1.FacetValue {
	value := &searchv1.FacetValue{Repo: v.Repo, Files: v.Documents}
	if by == search.ByFolder {
		value.Directory = []byte(v.Name)
	} else {
		value.Name = v.Name
	}
	return value
}

// AddFacet adds a searcher's counts.
func AddFacet(to *search.FacetCounts, m *searchv1.FacetCounts) {
	for _, v := range m.GetValues() {
		name := v.GetName()
		if m.GetFacet() == searchv1.Facet_FACET_DIRECTORY {
			name = string(v.GetDirectory())
		}
		to.Add(search.FacetValue{Repo: v.GetRepo(), Name: name}, v.GetFiles())
	}
	to.NotCounted += m.GetFilesNotCounted()
}

// TrimFacets leaves out the last values of facets until all facets have at most maxBytes bytes.
func TrimFacets(counts []*searchv1.FacetCounts, maxBytes int) {
	for _, c := range counts {
		room, n := maxBytes/len(counts), 0
		for ; n < len(c.Values) && room > 0; n++ {
			room -= proto.Size(c.Values[n]) + 4
		}
		if room < 0 {
			n--
		}
		c.ValuesLeftOut += uint64(len(c.Values) - n)
		c.Values = c.Values[:n]
	}
}
