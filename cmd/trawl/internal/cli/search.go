package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func newSearch(p Process) *cobra.Command {
	var (
		query  queryFlags
		answer answerFlags
		counts countFlags
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
  trawl search --any how does the garbage collector mark objects
  trawl search --files -g '*.proto'     paths alone
  trawl search 'TODO select:repo'       repos, with how many of their files match
  trawl search TODO --facets repo,language
  trawl search TODO --count-only        how many matches there are, in how many files
  trawl search 'path:src/**/*.go TODO count:10 timeout:2s'

With -F or -w the QUERY is one pattern, as that of -e is, and fields such as lang:go are part of its text: -r, -t, -g and -b say where
to look.

A terminal gets the best files, each with a heading. Anything else gets every file, one match a line, as grep prints them:
REPO:PATH:LINE:TEXT. On a terminal, control characters are escaped, and a file is REPO@BRANCH:PATH if its content on another branch
was printed before. Any other output gets TEXT in its own bytes; of one file that are the lines of 100,000 matches, and a warning if
it has more. The exit status is 0 if something was found, 1 if there is nothing, and 2 if the search failed, or found nothing in the
part that it could search.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := query.text(args)
			if err != nil {
				return err
			}
			answer.lines.paths = answer.lines.paths || query.files
			if answer.lines.counts, err = counts.options(&answer.lines); err != nil {
				return err
			}
			err = answer.run(cmd, p, text, func(ctx context.Context, c client, o *searchv1.SearchOptions, page []byte) (*searchv1.SearchResponse, error) {
				return c.search.Search(ctx, &searchv1.SearchRequest{Query: text, Options: o, PageToken: page})
			})
			if err == nil && !answer.lines.quiet {
				fmt.Fprint(p.Err, hint(text, isTerminal(p.Err)))
			}
			return err
		},
	}
	query.declare(cmd.Flags())
	answer.declare(cmd, p)
	counts.declare(cmd)
	completeNames(cmd, &answer.addr)
	return cmd
}

// isWords matches several words without anything that the query language knows.
var isWords = regexp.MustCompile(`^\w+(?: \w+)+$`)

// hint says what a query that found something may have meant instead; it is empty for most queries.
func hint(text string, terminal bool) string {
	if misread := searchapi.Misread(text, query.MaxSyntaxVersion); misread != nil {
		return render.Hint(misread)
	}
	if terminal {
		return asTheyStand(text)
	}
	return ""
}

// asTheyStand suggests -F to somebody who may expect the words of a query in one line; it is empty for other queries.
func asTheyStand(query string) string {
	words := strings.Fields(query)
	if !isWords.MatchString(query) || slices.Contains(words, "or") {
		return ""
	}
	return fmt.Sprintf("hint: these files have each of the words somewhere; -F '%s' finds them as they stand\n", query)
}

// ask requests the page of an answer that follows another one.
type ask func(ctx context.Context, c client, o *searchv1.SearchOptions, page []byte) (*searchv1.SearchResponse, error)

// answerFlags are the flags of commands that search: which router they ask, for how long, and how they show
// the answer.
type answerFlags struct {
	addr     routerAt
	lines    lineFlags
	timeout  time.Duration
	complete bool
	pagesURL string
}

func (a *answerFlags) declare(cmd *cobra.Command, p Process) {
	addressFlag(cmd.Flags(), p, &a.addr)
	a.lines.declare(cmd.Flags())
	pagesFlag(cmd.Flags(), p, &a.pagesURL)
	cmd.Flags().DurationVar(&a.timeout, "timeout", 10*time.Second, "time for the answer; the answer names what was not searched in that time")
	cmd.Flags().BoolVar(&a.complete, "require-complete", false, "fail when any part could not be searched")
}

// run asks for a query and prints the answer. Its error is the exit status.
func (a *answerFlags) run(cmd *cobra.Command, p Process, query string, ask ask) error {
	a.lines.bothSides(cmd.Flags(), a.lines.context)
	if err := a.lines.check(); err != nil {
		return err
	}
	if a.timeout <= 0 {
		return usageError{fmt.Errorf("--timeout is %v: want more than 0s", a.timeout)}
	}
	return p.paged(cmd.Context(), func(p Process) error { return a.print(cmd.Context(), p, query, ask) })
}

func (a *answerFlags) print(ctx context.Context, p Process, query string, ask ask) error {
	headings := a.lines.headings(p)
	link, err := p.links(a.lines.hyperlinks, a.pagesURL, a.addr.addr)
	if err != nil {
		return err
	}
	out, err := a.lines.printer(p, headings, link)
	if err != nil {
		return err
	}
	options := a.lines.options(headings)
	options.RequireComplete = a.complete
	found := false
	err = withClient(ctx, a.addr, func(ctx context.Context, c client) (err error) {
		found, err = a.pages(ctx, c, out, query, options, ask)
		return err
	})
	switch {
	case err != nil:
		return exitStatus{2, err}
	case !found:
		return exitStatus{status: 1}
	}
	return nil
}

// pageFiles is the number of files to request at once if there is no other limit.
const pageFiles = 1000

// errUnsearched is a search that found nothing, and did not search everything.
var errUnsearched = errors.New("nothing was found in what could be searched")

// pages prints an answer page by page, up to the files of the options, or all. The timeout is for each page.
func (a *answerFlags) pages(ctx context.Context, c client, out printer, query string, options *searchv1.SearchOptions, ask ask) (found bool, err error) {
	began, limit := time.Now(), options.MaxFiles
	var next []byte
	for shown := uint32(0); ; {
		options.MaxFiles = pageFiles
		if limit > 0 {
			options.MaxFiles = min(limit-shown, pageFiles)
		}
		page, err := a.page(ctx, c, options, next, ask)
		if err != nil {
			return false, &queryError{query, err}
		}
		if err := show(out, page.GetFiles()); err != nil {
			return false, err
		}
		shown += uint32(len(page.GetFiles()))
		next = page.GetNextPageToken()
		if len(next) > 0 && (limit == 0 || shown < limit) {
			continue
		}
		if err := sumUp(out, page, time.Since(began), showsMore(page, options.GetCountOnly(), shown, limit)); err != nil {
			return false, err
		}
		matched := page.GetStatistics().GetFilesMatched()
		if matched == 0 && !page.GetCoverage().GetComplete() {
			return false, errUnsearched
		}
		return matched > 0, nil
	}
}

// showsMore is what shows the files that are left out after those shown; empty if none are. The limit is 0 if there is none.
func showsMore(last *searchv1.SearchResponse, counted bool, shown, limit uint32) string {
	counted = counted || last.GetSelected() != searchv1.Facet_FACET_UNSPECIFIED
	switch {
	case len(last.GetNextPageToken()) == 0 && (counted || uint64(shown) >= last.GetStatistics().GetFilesMatched()):
		return ""
	case limit > 0 && shown >= limit:
		return "a larger --max-files"
	case !last.GetCoverage().GetComplete():
		return "a longer timeout"
	}
	return "a larger count: in the query"
}

func (a *answerFlags) page(ctx context.Context, c client, o *searchv1.SearchOptions, after []byte, ask ask) (*searchv1.SearchResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	page, err := ask(ctx, c, o, after)
	if status.Code(err) == codes.DeadlineExceeded && ctx.Err() != nil {
		return nil, fmt.Errorf("no answer came within %v: --timeout gives it more time", a.timeout)
	}
	return page, err
}

// queryError is a failed search for query.
type queryError struct {
	query string
	error
}

// Unwrap returns the error of the call.
func (e *queryError) Unwrap() error { return e.error }

// queryOf is the query that err is about, "" where it is about none.
func queryOf(err error) string {
	if q, ok := errors.AsType[*queryError](err); ok {
		return q.query
	}
	return ""
}
