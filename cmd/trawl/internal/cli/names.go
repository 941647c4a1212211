package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func newDef(p Process) *cobra.Command {
	return newPlaces(p, "def", "Show where a name is defined",
		`Show where a name is defined: a function, method, type, constant, macro, field, variable or module. The name is matched whole and with
case. A query after it restricts the files.

  trawl def NewReader
  trawl def NewReader 'r:kubernetes lang:go -f:vendor/'

Its output and its exit status are those of trawl search.`,
		func(ctx context.Context, c client, name, query string, o *searchv1.SearchOptions, page []byte) (*searchv1.SearchResponse, error) {
			r, err := c.search.Definitions(ctx, &searchv1.DefinitionsRequest{Name: name, Query: query, Options: o, PageToken: page})
			return asSearch(r), err
		})
}

func newRefs(p Process) *cobra.Command {
	return newPlaces(p, "refs", "Show where a name is used",
		`Show where a name is used: all its places except those that trawl def shows. The name is matched whole and with case, in code, comments and
other text. A query after it restricts the files.

  trawl refs NewReader
  trawl refs NewReader 'r:kubernetes lang:go -f:_test'

Its output and its exit status are those of trawl search.`,
		func(ctx context.Context, c client, name, query string, o *searchv1.SearchOptions, page []byte) (*searchv1.SearchResponse, error) {
			r, err := c.search.References(ctx, &searchv1.ReferencesRequest{Name: name, Query: query, Options: o, PageToken: page})
			return asSearch(r), err
		})
}

// placesOf is one page of the definitions of a name, or of its references.
type placesOf interface {
	GetRepos() []*searchv1.RepoMatches
	GetStatistics() *searchv1.Statistics
	GetCoverage() *searchv1.Coverage
	GetNextPageToken() []byte
	GetExplanation() *searchv1.Explanation
	GetEmpty() *searchv1.Empty
}

// asSearch is a page of places as the page of a search. A page that is nil is empty.
func asSearch(page placesOf) *searchv1.SearchResponse {
	return &searchv1.SearchResponse{
		Files: filesOf(page.GetRepos()), Statistics: page.GetStatistics(), Coverage: page.GetCoverage(),
		NextPageToken: page.GetNextPageToken(), Explanation: page.GetExplanation(), Empty: page.GetEmpty(),
	}
}

// filesOf returns the files of all repos, each with the name of its repo.
func filesOf(repos []*searchv1.RepoMatches) (files []*searchv1.FileMatch) {
	for _, group := range repos {
		for _, f := range group.GetFiles() {
			f.Repo = group.GetRepo()
			files = append(files, f)
		}
	}
	return files
}

// askForPlaces asks for a page of the places of a name in the files that a query matches.
type askForPlaces func(ctx context.Context, c client, name, query string, o *searchv1.SearchOptions, page []byte) (*searchv1.SearchResponse, error)

func newPlaces(p Process, use, short, long string, places askForPlaces) *cobra.Command {
	var answer answerFlags
	cmd := &cobra.Command{
		Use: use + " NAME [QUERY...]", Short: short, Long: long,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, query := args[0], strings.Join(args[1:], " ")
			return answer.run(cmd.Context(), p, query, func(ctx context.Context, c client, o *searchv1.SearchOptions, page []byte) (*searchv1.SearchResponse, error) {
				return places(ctx, c, name, query, o, page)
			})
		},
	}
	answer.declare(cmd, p)
	return cmd
}
