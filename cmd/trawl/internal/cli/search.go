package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// printer shows an answer: render.Text or render.JSON.
type printer interface {
	File(f *searchv1.FileMatch) error
	Explanation(e *searchv1.Explanation, searched uint64) error
	Summary(s *searchv1.Statistics, c *searchv1.Coverage, took time.Duration, more bool) error
}

// outputFlags say how an answer is shown.
type outputFlags struct {
	json       bool
	color      string
	maxFiles   uint32
	maxMatches uint32
	context    uint32
	topK       bool
	explain    bool
}

func (o *outputFlags) declare(flags *pflag.FlagSet) {
	flags.BoolVar(&o.json, "json", false, "print one JSON object a line: the files, with --explain how they were found, then a summary")
	flags.StringVar(&o.color, "color", "auto", "auto, always or never")
	flags.Uint32VarP(&o.maxFiles, "max-files", "n", 20, "most files shown")
	flags.Uint32VarP(&o.maxMatches, "max-matches", "m", 10, "most matches shown of one file")
	flags.Uint32VarP(&o.context, "context", "C", 0, "lines shown around each match")
	flags.BoolVar(&o.topK, "top", false, "only the best files, faster; counts become lower bounds")
	flags.BoolVar(&o.explain, "explain", false, "say how the query was answered, and why each file has its score")
}

func (o *outputFlags) options() *searchv1.SearchOptions {
	mode := searchv1.Mode_MODE_EXHAUSTIVE
	if o.topK {
		mode = searchv1.Mode_MODE_TOP_K
	}
	return &searchv1.SearchOptions{
		Mode: mode, MaxFiles: o.maxFiles, MaxMatchesPerFile: o.maxMatches, ContextLines: o.context, Explain: o.explain,
		MaxBytes: searchapi.MaxBytes,
	}
}

func (o *outputFlags) printer(p Process) (printer, error) {
	color, err := p.useColor(o.color)
	if err != nil {
		return nil, err
	}
	if o.json {
		return render.NewJSON(p.Out), nil
	}
	return render.NewText(p.Out, color, o.context > 0), nil
}

// show prints an answer and complains where it is not whole.
func show(out printer, r *searchv1.SearchResponse, took time.Duration) error {
	for _, f := range r.GetFiles() {
		if err := out.File(f); err != nil {
			return fmt.Errorf("printing the answer: %w", err)
		}
	}
	if e := r.GetExplanation(); e != nil {
		if err := out.Explanation(e, r.GetCoverage().GetSearched()); err != nil {
			return fmt.Errorf("printing the explanation: %w", err)
		}
	}
	more := uint64(len(r.GetFiles())) < r.GetStatistics().GetFilesMatched() || len(r.GetNextPageToken()) > 0
	if err := out.Summary(r.GetStatistics(), r.GetCoverage(), took, more); err != nil {
		return fmt.Errorf("printing the summary: %w", err)
	}
	return nil
}

func newSearch(p Process) *cobra.Command {
	var (
		addr     routerAt
		output   outputFlags
		timeout  time.Duration
		complete bool
	)
	cmd := &cobra.Command{
		Use:   "search QUERY...",
		Short: "Search the indexed repositories",
		Long: `Search the indexed repositories. Words of the query must all match; or, - and parentheses combine them.

  trawl search 'func main'              two words in one file
  trawl search '"func main"'            the words with one space between them
  trawl search 'lang:go f:_test\.go$ t\.Fatal'
  trawl search 'r:kubernetes (foo or bar) -f:vendor/'
  trawl search -- '-lang:go main'       a query that begins with a dash stands after --`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := output.printer(p)
			if err != nil {
				return err
			}
			query := strings.Join(args, " ")
			options := output.options()
			options.RequireComplete = complete
			return withClient(cmd.Context(), addr, func(ctx context.Context, c client) error {
				return search(ctx, c, out, &searchv1.SearchRequest{Query: query, Options: options}, timeout)
			})
		},
	}
	addressFlag(cmd.Flags(), p, &addr)
	output.declare(cmd.Flags())
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "time for the answer; what is not searched by then is named")
	cmd.Flags().BoolVar(&complete, "require-complete", false, "fail when any part could not be searched")
	return cmd
}

func search(ctx context.Context, c client, out printer, req *searchv1.SearchRequest, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	answer, err := c.search.Search(ctx, req)
	if err != nil {
		return &queryError{query: req.GetQuery(), err: err}
	}
	return show(out, answer, time.Since(began))
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
