package cli

import (
	"github.com/spf13/pflag"

	"github.com/trawl-search/trawl/index/query"
)

// patternFlags say what trawl grep and trawl search look for, and in which files.
type patternFlags struct {
	patterns   []string
	globs      []string
	fixed      bool
	word       bool
	ignoreCase bool
}

// declare declares the flags. The rest is what else stands on the command line beside -e.
func (f *patternFlags) declare(flags *pflag.FlagSet, rest string) {
	flags.StringArrayVarP(&f.patterns, "regexp", "e", nil, "look for this regular expression; several: any of them. "+rest)
	flags.StringArrayVarP(&f.globs, "glob", "g", nil, "only paths like this glob, such as '*.go' or 'src/**'; with ! before it none of them")
	flags.BoolVarP(&f.fixed, "fixed-strings", "F", false, "patterns are texts without special characters, not regular expressions")
	flags.BoolVarP(&f.word, "word-regexp", "w", false, "find whole words only")
	flags.BoolVarP(&f.ignoreCase, "ignore-case", "i", false, "in any case")
}

// checkGlobs refuses globs that can only be mistakes.
func (f *patternFlags) checkGlobs() error {
	for _, glob := range f.globs {
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

// contextFlag declares how many lines are shown on both sides of a match.
func contextFlag(flags *pflag.FlagSet, context *uint32) {
	flags.Uint32VarP(context, "context", "C", 0, "lines shown around each match")
}
