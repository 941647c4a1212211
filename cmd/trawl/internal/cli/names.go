package cli

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func newDef(p Process) *cobra.Command {
	var from string
	cmd := newPlaces(p, "def", "Show where a name is defined",
		`Show where a name is defined: a function, method, type, constant, macro, field, variable or module. The name is matched whole and with
case. A query after it restricts the files.

  trawl def NewReader
  trawl def NewReader 'r:kubernetes lang:go -f:vendor/'

With --from, the definition that is most likely meant at that place comes first, each definition on its own:

  trawl def NewReader --from k8s.io/kubernetes:src/main.go:8

Its output and its exit status are those of trawl search.`,
		func(ctx context.Context, c client, name, query string, o *searchv1.SearchOptions, page []byte) (*searchv1.SearchResponse, error) {
			r, err := definitions(ctx, c, &searchv1.DefinitionsRequest{Name: name, Query: query, Options: o, PageToken: page}, from)
			return asSearch(r), err
		})
	cmd.Flags().StringVar(&from, "from", "", "the place at which the name is used, as REPO:PATH:LINE or REPO:PATH:LINE:COLUMN")
	return cmd
}

// definitions asks for definitions, from a place if that is not empty.
func definitions(ctx context.Context, c client, req *searchv1.DefinitionsRequest, from string) (r *searchv1.DefinitionsResponse, err error) {
	if from == "" {
		return c.search.Definitions(ctx, req)
	}
	m := placeInFile.FindStringSubmatch(from)
	if m == nil {
		return nil, usageError{fmt.Errorf("%q is not a place: want REPO:PATH:LINE, as trawl search -n prints them", from)}
	}
	req.From = &searchv1.Place{}
	for i, to := range []*uint32{&req.From.Line, &req.From.Column} {
		if n, err := strconv.ParseUint(m[i+2], 10, 32); err == nil {
			*to = uint32(n)
		}
	}
	err = forFile(m[1], "", func(file *searchv1.GetFileRequest) error {
		req.From.Repo, req.From.Path, req.From.Branch = file.Repo, file.Path, file.Branch
		r, err = c.search.Definitions(ctx, req)
		return err
	})
	return r, err
}

// placeInFile is REPO:PATH:LINE or REPO:PATH:LINE:COLUMN.
var placeInFile = regexp.MustCompile(`^(.+?:.+?):([0-9]+)(?::([0-9]+))?:?$`)

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
		Files: searchapi.FilesOfRepos(page.GetRepos()), Statistics: page.GetStatistics(), Coverage: page.GetCoverage(),
		NextPageToken: page.GetNextPageToken(), Explanation: page.GetExplanation(), Empty: page.GetEmpty(),
	}
}

// askForPlaces asks for a page of the places of a name in the files that a query matches.
type askForPlaces func(ctx context.Context, c client, name, query string, o *searchv1.SearchOptions, page []byte) (*searchv1.SearchResponse, error)

func newPlaces(p Process, use, short, long string, places askForPlaces) *cobra.Command {
	var answer answerFlags
	cmd := &cobra.Command{
		Use: use + " NAME [QUERY...]", Short: short, Long: long,
		Args: func(cmd *cobra.Command, args []string) error {
			return named(cobra.MinimumNArgs(1))(cmd, args[:min(len(args), 1)]) // the query may be empty
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name, query := args[0], strings.Join(args[1:], " ")
			return answer.run(cmd, p, query, func(ctx context.Context, c client, o *searchv1.SearchOptions, page []byte) (*searchv1.SearchResponse, error) {
				return places(ctx, c, name, query, o, page)
			})
		},
	}
	answer.declare(cmd, p)
	completeNames(cmd, &answer.addr)
	return cmd
}
