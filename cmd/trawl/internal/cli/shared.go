package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/trawl-search/trawl/index/query"
)

// patternFlags say what trawl grep and trawl search look for, and in which files.
type patternFlags struct {
	patterns []string
	globs    []string
	fixed    bool
	word     bool
	letters  letterCase
}

// letterCase says how letters compare, by the last of the flags about it, as in ripgrep.
type letterCase uint8

const (
	caseByDefault letterCase = iota
	caseIgnored
	caseSensitive
	caseSmart
)

// declare declares the flags. The rest is what else stands on the command line beside -e.
func (f *patternFlags) declare(flags *pflag.FlagSet, rest string) {
	flags.StringArrayVarP(&f.patterns, "regexp", "e", nil, "look for this regular expression; several: any of them. "+rest)
	flags.StringArrayVarP(&f.globs, "glob", "g", nil, "only paths like this glob, such as '*.go' or 'src/**'; with ! before it none of them")
	flags.BoolVarP(&f.fixed, "fixed-strings", "F", false, "patterns are texts without special characters, not regular expressions")
	flags.BoolVarP(&f.word, "word-regexp", "w", false, "find whole words only")
	f.caseFlag(flags, caseIgnored, "ignore-case", "i", "in any case")
	f.caseFlag(flags, caseSmart, "smart-case", "S", "in any case if the pattern has no capital")
}

func (f *patternFlags) caseFlag(flags *pflag.FlagSet, letters letterCase, name, short, usage string) {
	flags.BoolFuncP(name, short, usage, func(value string) error {
		on, err := strconv.ParseBool(value)
		switch {
		case on:
			f.letters = letters
		case f.letters == letters:
			f.letters = caseByDefault
		}
		return err //nolint:wrapcheck // pflag says which flag it is
	})
}

// checkGlobs refuses globs that can only be mistakes. An empty one says nothing, as in ripgrep.
func (f *patternFlags) checkGlobs() error {
	f.globs = slices.DeleteFunc(f.globs, func(glob string) bool { return glob == "" })
	for _, glob := range f.globs {
		if strings.TrimSpace(glob) == "!" {
			return usageError{errors.New(`the glob "!" names nothing to leave out`)}
		}
		if err := query.CheckGlob(glob); err != nil {
			return usageError{err}
		}
	}
	return nil
}

// shownFlags say what trawl grep and commands that search show of each file.
type shownFlags struct {
	paths         bool
	only          bool
	before, after uint32
	hyperlinks    string
}

func (f *shownFlags) declare(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.paths, "files-with-matches", "l", false, "print files alone")
	flags.BoolVarP(&f.only, "only-matching", "o", false, "print each match alone, not its line")
	flags.Uint32VarP(&f.after, "after-context", "A", 0, "lines shown after each match")
	flags.Uint32VarP(&f.before, "before-context", "B", 0, "lines shown before each match")
	flags.StringVar(&f.hyperlinks, "hyperlinks", "auto", "auto, always or never: make files and lines hyperlinks, which terminals open")
}

// bothSides gives -A and -B the lines of -C where they are not given themselves, as in ripgrep and grep.
func (f *shownFlags) bothSides(flags *pflag.FlagSet, context uint32) {
	if !flags.Changed("after-context") {
		f.after = context
	}
	if !flags.Changed("before-context") {
		f.before = context
	}
}

// contextFlag declares how many lines are shown on both sides of a match.
func contextFlag(flags *pflag.FlagSet, context *uint32) {
	flags.Uint32VarP(context, "context", "C", 0, "lines shown around each match")
}
