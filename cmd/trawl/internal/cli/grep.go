package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/gitsource/language"
	"github.com/trawl-search/trawl/internal/grep"
	"github.com/trawl-search/trawl/internal/grep/ignore"
	"github.com/trawl-search/trawl/internal/grep/localindex"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// grepFlags are the flags of trawl grep. They have ripgrep's meanings.
type grepFlags struct {
	patternFlags
	shownFlags
	quiet            bool
	most             uint32
	color            string
	types, notTypes  []string
	hidden, noIgnore bool
	forget           bool
	context          uint32
	replacement      string
	sort, sortr      string
	stats, multiline bool
	show             grep.Show
}

func newGrep(p Process) *cobra.Command {
	var f grepFlags
	cmd := &cobra.Command{
		Use:   "grep PATTERN [FOLDER|FILE...]",
		Short: "Search the files of a folder through a local index",
		Long: `Grep prints the lines of the files in a folder that match a regular expression, as "rg -nH --no-heading --sort path" does.
The first search reads all files, and then makes an index in the user's cache folder. Later searches check the files' times
and sizes, and read only what changed and what the index finds. A FILE is read, whatever ignores it. The file - is the
standard input, and so is a pipe if nothing is named.

The exit status is 0 if a line was selected, 1 if none was, and 2 after an error.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.forget {
				return f.forgetIndex(p, args)
			}
			found, err := f.run(cmd, p, args)
			switch {
			case err != nil:
				return exitStatus{status: 2, err: err}
			case !found:
				return exitStatus{status: 1}
			}
			return nil
		},
	}
	f.declare(cmd)
	return cmd
}

func (f *grepFlags) declare(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.patternFlags.declare(flags, "What else stands on the command line is then no pattern")
	f.shownFlags.declare(flags)
	contextFlag(flags, &f.context)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing, and end at the first match: the exit status says whether there is one")
	flags.Uint32VarP(&f.most, "max-count", "m", 0, "most lines selected in each file; default all")
	flags.StringArrayVarP(&f.types, "type", "t", nil, "only files of this language, such as go or c++; several: any of them")
	flags.StringArrayVarP(&f.notTypes, "type-not", "T", nil, "no files of this language")
	flags.StringVar(&f.color, "color", "auto", "auto, always or never")
	flags.BoolVarP(&f.multiline, "multiline", "U", false, "let a match be in several lines, with \\n, \\s and [^x]; . needs (?s) to match a line break")
	flags.StringVarP(&f.replacement, "replace", "r", "", "print this in place of each match; $1 and $name are groups of the pattern, ${1} and ${name} before a letter, a digit or _; $$ is a dollar")
	flags.StringVar(&f.sort, "sort", "path", "path, modified, accessed (oldest first), or none: the order of files")
	flags.StringVar(&f.sortr, "sortr", "", "as --sort, in reverse")
	flags.BoolVar(&f.stats, "stats", false, "print at the end what was searched; unchanged files that the index rules out are not")
	f.caseFlag(flags, caseSensitive, "case-sensitive", "s", "in just this case, the default")
	flags.BoolVarP(&f.show.Count, "count", "c", false, "print how many lines of each file match, with -o how many matches there are")
	flags.BoolVarP(&f.show.Invert, "invert-match", "v", false, "select lines that do not match; all files are read")
	flags.BoolVarP(&f.show.LineNumbers, "line-number", "n", true, "print line numbers")
	flags.BoolVar(&f.hidden, "hidden", false, "search files and folders whose names begin with a dot; they have an index of their own")
	flags.BoolVar(&f.noIgnore, "no-ignore", false, "do not read .gitignore, .ignore and .rgignore; these files have an index of their own")
	flags.BoolVar(&f.forget, "forget", false, "delete the indexes of a folder instead; without one, of the working directory")
}

// grepCache is the folder for indexes, "" if there is none.
func grepCache(p Process) string {
	for _, base := range []string{p.env("XDG_CACHE_HOME"), filepath.Join(p.env("HOME"), ".cache")} {
		if filepath.IsAbs(base) { // a relative one does not count
			return filepath.Join(base, "trawl", "grep")
		}
	}
	return ""
}

func (f *grepFlags) forgetIndex(p Process, args []string) error {
	if len(args) > 1 {
		return usageError{errors.New("--forget takes one folder")}
	}
	cache := grepCache(p)
	if cache == "" {
		return errors.New("no cache folder for indexes: set XDG_CACHE_HOME or HOME to an absolute path")
	}
	folder := "."
	if len(args) == 1 {
		folder = args[0]
	}
	size, err := localindex.Forget(folder, cache)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Out, "forgot %s: %s\n", folder, searchapi.Bytes(uint64(size)))
	return err
}

// read takes the patterns, and the folders and files, from the command line.
func (f *grepFlags) read(cmd *cobra.Command, p Process, args []string) (paths []string, err error) {
	if len(f.patterns) == 0 {
		if len(args) == 0 {
			return nil, usageError{errors.New("the pattern is missing; see trawl grep --help")}
		}
		f.patterns, args = args[:1], args[1:]
	}
	if err := f.checkGlobs(); err != nil {
		return nil, err
	}
	flags := cmd.Flags()
	f.bothSides(flags, f.context)
	f.show.Files, f.show.OnlyMatching, f.show.Before, f.show.After, f.show.Most = f.paths || f.quiet, f.only, int(f.before), int(f.after), int(f.most)
	if f.paths && f.show.Count {
		return nil, usageError{errors.New("-l and -c exclude each other")}
	}
	if slices.Contains(args, "") {
		return nil, usageError{errors.New(`the name of a folder or file is empty: a dot is the working directory`)}
	}
	if len(args) == 0 && isPipe(p.In) {
		args = []string{"-"}
	}
	if !slices.Contains(args, "-") {
		if len(args) == 0 {
			args = []string{""}
		}
		return args, nil
	}
	if p.In == nil {
		return nil, usageError{errors.New("there is no standard input")}
	}
	f.show.LineNumbers = f.show.LineNumbers && flags.Changed("line-number")
	return args, nil
}

// order is the order of files.
func (f *grepFlags) order() (order grep.Order, err error) {
	name := f.sort
	if f.sortr != "" {
		name, order.Reverse = f.sortr, true
	}
	keys := map[string]grep.Key{"none": grep.AsFound, "path": grep.Path, "modified": grep.Modified, "accessed": grep.Accessed}
	by, ok := keys[name]
	if order.By = by; !ok {
		return order, usageError{fmt.Errorf("unknown order %q: want path, modified, accessed or none", name)}
	}
	if by == grep.Path && !order.Reverse {
		order.By = grep.AsFound // the files of each folder are found in this order, and roots stay in theirs
	}
	return order, nil
}

// isPipe reports whether a program, or a file, is the standard input.
func isPipe(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && (info.Mode()&os.ModeNamedPipe != 0 || info.Mode().IsRegular())
}

// languages makes a function that keeps the files of the languages of -t, and none of those of -T; nil to keep all.
func (f *grepFlags) languages() (keep func(path string, content []byte) bool, err error) {
	if len(f.types)+len(f.notTypes) == 0 {
		return nil, nil
	}
	only, err := languagesNamed(f.types)
	if err != nil {
		return nil, err
	}
	not, err := languagesNamed(f.notTypes)
	if err != nil {
		return nil, err
	}
	detectors := sync.Pool{New: func() any { return new(language.Detector) }}
	return func(path string, content []byte) bool {
		d, _ := detectors.Get().(*language.Detector)
		defer detectors.Put(d)
		name := d.Detect([]byte(path), content)
		return (len(only) == 0 || slices.Contains(only, name)) && !slices.Contains(not, name)
	}, nil
}

func languagesNamed(aliases []string) (names []string, err error) {
	for _, alias := range aliases {
		name, ok := language.ByAlias(alias)
		if !ok {
			return nil, usageError{fmt.Errorf("unknown language %q%s", alias, spelledLike(alias, "", language.Aliases()))}
		}
		names = append(names, name)
	}
	return names, nil
}

func (f *grepFlags) run(cmd *cobra.Command, p Process, args []string) (found bool, err error) {
	paths, err := f.read(cmd, p, args)
	if err != nil {
		return false, err
	}
	keep, err := f.languages()
	if err != nil {
		return false, err
	}
	order, err := f.order()
	if err != nil {
		return false, err
	}
	opts := grep.PatternOptions{Fixed: f.fixed, Words: f.word, Multiline: f.multiline}
	if cmd.Flags().Changed("replace") {
		opts.Replacement = &f.replacement
	}
	switch f.letters {
	case caseSmart:
		opts.Case = grep.Smart
	case caseIgnored:
		opts.Case = grep.Insensitive
	}
	compiled, err := grep.NewPattern(f.patterns, opts)
	if err != nil {
		return false, err
	}
	if f.most == 0 && cmd.Flags().Changed("max-count") {
		return false, nil
	}
	failed := false
	search := grep.Search{Pattern: compiled, Show: f.show, Order: order, Keep: keep, First: f.quiet, Warn: func(err error) {
		failed = true
		fmt.Fprintf(p.Err, "trawl: %s\n", err)
	}}
	if search.Roots, err = f.roots(p, paths, search.Warn); err != nil {
		return false, err
	}
	err = p.paged(cmd.Context(), func(p Process) (err error) {
		if found, err = f.search(cmd.Context(), p, &search); f.quiet && found {
			failed = false
		}
		return err
	})
	if err != nil {
		return false, err
	}
	for _, root := range search.Roots {
		if root.Index != nil {
			f.update(cmd.Context(), p, root.Index)
		}
	}
	if failed {
		return false, errors.New("not all was searched")
	}
	return found, nil
}

// roots are the folders with their indexes, files and input at paths. Of several paths, it warns of those that do not exist.
func (f *grepFlags) roots(p Process, paths []string, warn func(error)) (roots []grep.Root, err error) {
	for _, path := range paths {
		root := grep.Root{Path: path}
		info, err := os.Stat(path)
		switch {
		case path == "-":
			root.Input = p.In
		case path == "" || err != nil || info.IsDir():
			if root.Index, err = f.open(p, path); err == nil {
				break
			}
			if len(paths) == 1 {
				return nil, err
			}
			warn(err)
			continue
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// search prints what a search finds, and what it searched.
func (f *grepFlags) search(ctx context.Context, p Process, search *grep.Search) (found bool, err error) {
	began := time.Now()
	if search.Out = p.Out; f.quiet {
		search.Out = io.Discard
	}
	color, err := p.useColor(f.color)
	if err != nil {
		return false, err
	}
	if color {
		search.Show.Colors = &render.GrepColors
	}
	if search.Link, err = p.fileLinks(f.hyperlinks); err != nil {
		return false, err
	}
	if f.stats {
		search.Stats, search.First = new(grep.Stats), false
	}
	if found, err = search.Run(ctx); err != nil || !f.stats {
		return found, err
	}
	s := search.Stats
	_, err = fmt.Fprintf(p.Out, `
%d matches
%d matched lines
%d files contained matches
%d files searched
%d bytes printed
%d bytes searched
%f seconds
`, s.Matches, s.MatchedLines, s.FilesWithMatch, s.Files, s.BytesPrinted, s.BytesSearched, time.Since(began).Seconds())
	return found, err //nolint:wrapcheck // it is of the output
}

func (f *grepFlags) open(p Process, folder string) (*localindex.Index, error) {
	opts := localindex.Options{Cache: grepCache(p), Ignore: ignore.Options{
		Hidden: f.hidden, NoRules: f.noIgnore, GlobalGit: ignore.GlobalGit(p.env("HOME"), p.env("XDG_CONFIG_HOME")),
	}}
	if len(f.globs) > 0 {
		opts.Ignore.Globs = ignore.NewGlobs(f.globs)
	}
	if folder == "" {
		folder = "."
	}
	return localindex.Open(folder, opts)
}

// update brings the index up to date after a search. A failure is only reported, since the answer is
// complete without it.
func (f *grepFlags) update(ctx context.Context, p Process, index *localindex.Index) {
	if err := index.Damage(); err != nil {
		fmt.Fprintf(p.Err, "trawl: the index cannot be used and is built again: %s\n", err)
	}
	err := index.Update(ctx, func(files int, bytes int64) {
		if isTerminal(p.Err) {
			fmt.Fprintf(p.Err, "trawl: indexing %s (%s) for the next search; stop it whenever you like\n", render.Count(uint64(files), "file", "files"), searchapi.Bytes(uint64(bytes)))
		}
	})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(p.Err, "trawl: the index was not brought up to date: %s\n", err)
	}
}
