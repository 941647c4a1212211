package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// valuesForPeople and allValues are how many values of each facet people and programs get.
const valuesForPeople, allValues = 20, 10_000

// facetsByName are the facets that the command line knows.
var facetsByName = map[string]searchv1.Facet{
	"repo": searchv1.Facet_FACET_REPO, "language": searchv1.Facet_FACET_LANGUAGE,
	"directory": searchv1.Facet_FACET_DIRECTORY, "branch": searchv1.Facet_FACET_BRANCH,
}

// facetNames are their names in order.
var facetNames = slices.Sorted(maps.Keys(facetsByName))

// countFlags ask for counts in place of files.
type countFlags struct {
	only   bool
	facets []string
}

func (c *countFlags) declare(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.only, "count-only", false, "print no files, but how many matches there are in how many files")
	cmd.Flags().StringSliceVar(&c.facets, "facets", nil, "print no files, but how many of them match by these: repo, language, directory, branch")
	// It fails for a flag that is not declared.
	_ = cmd.RegisterFlagCompletionFunc("facets", completeFacets)
}

// completeFacets completes the last of a list of facets with those that are not in it yet.
func completeFacets(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := strings.LastIndex(typed, ",") + 1
	given := strings.Split(typed[:before], ",")
	var lists []string
	for _, name := range facetNames {
		if !slices.Contains(given, name) && strings.HasPrefix(name, typed[before:]) {
			lists = append(lists, typed[:before]+name)
		}
	}
	return lists, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// counts are what a search asks for in place of files.
type counts struct{ facets []searchv1.Facet }

// options are the counts that the flags ask for, nil for files.
func (c *countFlags) options(lines *lineFlags) (*counts, error) {
	if !c.only && len(c.facets) == 0 {
		return nil, nil //nolint:nilnil // no counts are no error
	}
	if lines.filesAlone() || lines.only || lines.quiet || lines.topK || lines.maxFiles > 0 {
		return nil, usageError{errors.New("--count-only and --facets print no files: they exclude --files, -l, -c, -o, -q, --top and --max-files")}
	}
	asked := &counts{}
	for _, name := range c.facets {
		facet, ok := facetsByName[name]
		switch {
		case !ok:
			return nil, usageError{fmt.Errorf("unknown facet %q: want %s", name, strings.Join(facetNames, ", "))}
		case slices.Contains(asked.facets, facet):
			return nil, usageError{fmt.Errorf("--facets names %s twice", name)}
		}
		asked.facets = append(asked.facets, facet)
	}
	return asked, nil
}

// apply asks for the counts.
func (c *counts) apply(o *searchv1.SearchOptions, headings bool) {
	o.CountOnly, o.Facets, o.MaxFacetValues = true, c.facets, allValues
	if headings {
		o.MaxFacetValues = valuesForPeople
	}
}
