package cli

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// printer shows an answer.
type printer interface {
	File(f *searchv1.FileMatch) error
	Explanation(e *searchv1.Explanation, searched uint64) error
	Rest(resp *searchv1.SearchResponse) error
	Summary(s *searchv1.Statistics, c *searchv1.Coverage, took time.Duration, more string) error
}

const (
	// The limits of what people are shown by default.
	filesForPeople, linesForPeople = 20, 10
	// allMatches is the most that the API returns of one file.
	allMatches = 100_000
)

// outputFlags say how an answer is shown.
type outputFlags struct {
	json     bool
	color    string
	maxFiles uint32
	maxLines uint32
	context  uint32
	topK     bool
	explain  bool
}

func (o *outputFlags) declare(flags *pflag.FlagSet) {
	flags.BoolVar(&o.json, "json", false, "print one JSON object a line: the files, with --explain how they were found, then a summary")
	flags.StringVar(&o.color, "color", "auto", "auto, always or never")
	flags.Uint32Var(&o.maxFiles, "max-files", 0, "most files shown; default 20 with headings, else all")
	flags.Uint32VarP(&o.maxLines, "max-count", "m", 0, "most lines with matches shown of one file, the best ones; default 10 with headings, else all")
	contextFlag(flags, &o.context)
	flags.BoolVar(&o.topK, "top", false, "only the best files, faster; counts become lower bounds")
	flags.BoolVar(&o.explain, "explain", false, "say how the query was answered, and why each file has its score")
}

// options returns the options of a search: for people if there are headings, else for programs.
func (o *outputFlags) options(headings bool) *searchv1.SearchOptions {
	options := &searchv1.SearchOptions{
		Mode: searchv1.Mode_MODE_EXHAUSTIVE, MaxFiles: o.maxFiles, MaxMatchesPerFile: allMatches, MaxLinesPerFile: o.maxLines, ContextLines: o.context,
		Explain: o.explain, MaxBytes: searchapi.MaxBytes, SyntaxVersion: query.MaxSyntaxVersion,
	}
	if o.topK {
		options.Mode = searchv1.Mode_MODE_TOP_K
	}
	if headings && o.maxFiles == 0 {
		options.MaxFiles = filesForPeople
	}
	if headings && o.maxLines == 0 {
		options.MaxLinesPerFile = linesForPeople
	}
	return options
}

// printer prints files with headings, or as JSON.
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

// lineFlags select what is shown of each file, like those of grep and ripgrep.
type lineFlags struct {
	outputFlags
	shownFlags
	heading   bool
	noHeading bool
	count     bool
	quiet     bool
	null      bool
	column    bool
	numbers   bool
	noNumbers bool
	// counts are asked for in place of files; nil for files.
	counts *counts
}

func (l *lineFlags) declare(flags *pflag.FlagSet) {
	l.outputFlags.declare(flags)
	l.shownFlags.declare(flags)
	flags.BoolVar(&l.heading, "heading", false, "print each file once, above its lines; default on a terminal")
	flags.BoolVar(&l.noHeading, "no-heading", false, "print the file before each line; default where there is no terminal")
	flags.BoolVarP(&l.count, "count", "c", false, "print files with the number of their matches")
	flags.BoolVarP(&l.quiet, "quiet", "q", false, "print nothing: the exit status is 0 if there is a match, 1 if there is none")
	flags.BoolVarP(&l.null, "null", "0", false, "end each file of --files, -l and -c with a NUL byte, which is before the count, and print its name as it is")
	flags.BoolVar(&l.column, "column", false, "print the column of the first match of a line, too, in bytes from 1, as ripgrep does")
	flags.BoolVarP(&l.numbers, "line-number", "n", false, "print the numbers of lines: the default")
	flags.BoolVarP(&l.noNumbers, "no-line-number", "N", false, "print no numbers of lines")
}

// headings reports whether people are to read the answer.
func (l *lineFlags) headings(p Process) bool {
	programs := l.json || l.noHeading || l.filesAlone() || l.only || l.quiet || l.column || l.noNumbers
	return !programs && (l.heading || isTerminal(p.Out))
}

func (l *lineFlags) filesAlone() bool { return l.paths || l.count }

// mostContext is how many lines around a match a router shows.
const mostContext = 20

// check fails for flags that contradict each other.
func (l *lineFlags) check() error {
	switch {
	case l.heading && l.noHeading:
		return usageError{errors.New("--heading and --no-heading exclude each other")}
	case l.numbers && l.noNumbers:
		return usageError{errors.New("--line-number and --no-line-number exclude each other")}
	case l.paths && l.count:
		return usageError{errors.New("-c excludes -l and --files")}
	case l.json && l.filesAlone():
		return usageError{errors.New("--json excludes --files, -l and -c: its lines have paths and counts")}
	case l.null && !l.filesAlone():
		return usageError{errors.New("--null needs --files, -l or -c")}
	case max(l.before, l.after) > mostContext:
		return usageError{fmt.Errorf("at most %d lines are shown around a match", mostContext)}
	}
	return nil
}

// options asks for what is shown.
func (l *lineFlags) options(headings bool) *searchv1.SearchOptions {
	options := l.outputFlags.options(headings)
	options.ContextLines = max(l.before, l.after)
	if options.ContextLines > 0 && !l.json {
		// Around drops the extra line. Without it, a chunk that ends in a line break could end with
		// the last line of its file, or with an empty line.
		options.ContextLines = min(options.ContextLines+1, mostContext)
	}
	switch {
	case l.counts != nil:
		l.counts.apply(options, headings)
	case l.quiet:
		options.Mode, options.MaxFiles, options.MaxMatchesPerFile = searchv1.Mode_MODE_TOP_K, 1, 1
	case l.filesAlone():
		options.MaxMatchesPerFile = 1
	}
	return options
}

// printer prints an answer to p.Out, and warnings about missing parts to p.Err.
func (l *lineFlags) printer(p Process, headings bool, link render.Link) (printer, error) {
	color, err := p.useColor(l.color)
	if err != nil {
		return nil, err
	}
	var out printer
	switch {
	case l.quiet:
		return render.NewPaths(io.Discard, io.Discard, false, false, false), nil
	case l.filesAlone():
		paths := render.NewPaths(p.Out, p.Err, color, l.count, l.null)
		paths.Link, paths.Raw, paths.Branches = link, l.null && !isTerminal(p.Out), isTerminal(p.Out)
		return paths, nil
	case l.json:
		out = render.NewJSON(p.Out)
	case headings:
		text := render.NewText(p.Out, color, l.before+l.after > 0)
		text.Link, out = link, text
	case l.counts != nil:
		return render.NewCounts(p.Out, p.Err, color, len(l.counts.facets) > 0), nil
	default:
		out = render.NewLines(p.Out, p.Err, render.LineStyle{
			Color: color, Context: l.before+l.after > 0, Only: l.only, Column: l.column, NoNumbers: l.noNumbers, Link: link,
			Raw: !isTerminal(p.Out), Whole: l.maxLines == 0,
		})
	}
	if l.before != l.after || l.before > 0 && !l.json {
		out = &around{out, l.before, l.after}
	}
	return out, nil
}

// around prints files with fewer lines around a match than the answer has.
type around struct {
	printer
	before, after uint32
}

// File prints one file.
func (a *around) File(f *searchv1.FileMatch) error {
	return a.printer.File(render.Around(f, a.before, a.after))
}

// show prints a page of an answer.
func show(out printer, files []*searchv1.FileMatch) error {
	for _, f := range files {
		if err := out.File(f); err != nil {
			return fmt.Errorf("printing the answer: %w", err)
		}
	}
	return nil
}

// sumUp prints the summary of an answer. More is what shows files that were left out; empty if none were.
func sumUp(out printer, last *searchv1.SearchResponse, took time.Duration, more string) error {
	if e := last.GetExplanation(); e != nil {
		if err := out.Explanation(e, last.GetCoverage().GetSearched()); err != nil {
			return fmt.Errorf("printing the explanation: %w", err)
		}
	}
	if err := out.Rest(last); err != nil {
		return fmt.Errorf("printing the answer: %w", err)
	}
	if err := out.Summary(last.GetStatistics(), last.GetCoverage(), took, more); err != nil {
		return fmt.Errorf("printing the summary: %w", err)
	}
	return nil
}

// table prints rows, whose cells end in tabs, in columns. Its error names what they are.
func table(out io.Writer, what string, rows func(io.Writer)) error {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rows(tw)
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("printing the %s: %w", what, err)
	}
	return nil
}

// printMessages prints each message as a line of JSON. Its error names what they are.
func printMessages[M proto.Message](out io.Writer, what string, messages ...M) error {
	for _, m := range messages {
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
		if err != nil {
			return fmt.Errorf("printing the %s: %w", what, err)
		}
		if _, err := fmt.Fprintf(out, "%s\n", text); err != nil {
			return fmt.Errorf("printing the %s: %w", what, err)
		}
	}
	return nil
}
