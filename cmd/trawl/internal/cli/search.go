package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func newSearch(p Process) *cobra.Command {
	var (
		addr     routerAt
		query    queryFlags
		output   lineFlags
		timeout  time.Duration
		complete bool
	)
	cmd := &cobra.Command{
		Use:   "search [QUERY...]",
		Short: "Search the indexed repositories",
		Long: `Search the indexed repositories. Words of the query must all match; or, - and parentheses combine them.

  trawl search 'func main'              two words in one file
  trawl search '"func main"'            the words with one space between them
  trawl search 'lang:go f:_test\.go$ t\.Fatal'
  trawl search 'r:kubernetes (foo or bar) -f:vendor/'
  trawl search -- '-lang:go main'       a query that begins with a dash stands after --
  trawl search -F 'a[i]++' -t c         a text as it is, in C
  trawl search -e 'TODO|FIXME' -g 'src/**' -A2
  trawl search --files -g '*.proto'     paths alone

A terminal gets the best files, each with a heading. Anything else gets every file, one match a line, as grep prints them:
REPO:PATH:LINE:TEXT. The exit status is 0 if something was found, 1 if there is nothing, and 2 if the search failed, or
found nothing in the part that it could search.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := query.text(args)
			if err != nil {
				return err
			}
			output.paths = output.paths || query.files
			if err := output.check(); err != nil {
				return err
			}
			headings := output.headings(p)
			out, err := output.printer(p, headings)
			if err != nil {
				return err
			}
			req := &searchv1.SearchRequest{Query: text, Options: output.options(headings)}
			req.Options.RequireComplete = complete
			found := false
			err = withClient(cmd.Context(), addr, func(ctx context.Context, c client) (err error) {
				found, err = search(ctx, c, out, req, timeout)
				return err
			})
			switch {
			case err != nil:
				return exitStatus{2, err}
			case !found:
				return exitStatus{status: 1}
			}
			return nil
		},
	}
	addressFlag(cmd.Flags(), p, &addr)
	query.declare(cmd.Flags())
	output.declare(cmd.Flags())
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "time for the answer; what is not searched by then is named")
	cmd.Flags().BoolVar(&complete, "require-complete", false, "fail when any part could not be searched")
	return cmd
}

// pageFiles is how many files are asked for at once where there is no other limit.
const pageFiles = 1000

// errUnsearched is a search that found nothing, and did not search everything.
var errUnsearched = errors.New("nothing was found in what could be searched")

// search prints the answer to a request, page by page up to the request's files, or all. The timeout is
// for each page.
func search(ctx context.Context, c client, out printer, req *searchv1.SearchRequest, timeout time.Duration) (found bool, err error) {
	began, limit := time.Now(), req.Options.MaxFiles
	for shown := uint32(0); ; {
		req.Options.MaxFiles = pageFiles
		if limit > 0 {
			req.Options.MaxFiles = min(limit-shown, pageFiles)
		}
		answer, err := searchPage(ctx, c, req, timeout)
		if err != nil {
			return false, err
		}
		if err := show(out, answer.GetFiles()); err != nil {
			return false, err
		}
		shown += uint32(len(answer.GetFiles()))
		req.PageToken = answer.GetNextPageToken()
		if more := len(req.PageToken) > 0; more && (limit == 0 || shown < limit) {
			continue
		}
		matched := answer.GetStatistics().GetFilesMatched()
		if err := sumUp(out, answer, time.Since(began), uint64(shown) < matched || len(req.PageToken) > 0); err != nil {
			return false, err
		}
		if matched == 0 && !answer.GetCoverage().GetComplete() {
			return false, errUnsearched
		}
		return matched > 0, nil
	}
}

func searchPage(ctx context.Context, c client, req *searchv1.SearchRequest, timeout time.Duration) (*searchv1.SearchResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := c.search.Search(ctx, req)
	if err != nil {
		return nil, &queryError{query: req.GetQuery(), err: err}
	}
	return answer, nil
}

// queryError is a failed search for query.
type queryError struct {
	query string
	err   error
}

// Error implements error.
func (e *queryError) Error() string { return e.err.Error() }

// Unwrap returns the error of the call.
func (e *queryError) Unwrap() error { return e.err }

// queryOf is the query that err is about, "" where it is about none.
func queryOf(err error) string {
	if q, ok := errors.AsType[*queryError](err); ok {
		return q.query
	}
	return ""
}
