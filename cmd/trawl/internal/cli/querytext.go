package cli

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
)

// queryFlags are the flags of a search that become parts of its query.
type queryFlags struct {
	patternFlags
	types    []string
	notTypes []string
	repos    []string
	branch   string
	files    bool
	any      bool
}

func (q *queryFlags) declare(flags *pflag.FlagSet) {
	q.patternFlags.declare(flags, "A QUERY beside it must match too")
	q.caseFlag(flags, caseSensitive, "case-sensitive", "s", "in just this case; default: as -S")
	flags.StringSliceVarP(&q.types, "type", "t", nil, "only files in this language, such as go")
	flags.StringSliceVarP(&q.notTypes, "type-not", "T", nil, "no files in this language")
	flags.StringArrayVarP(&q.repos, "repo", "r", nil, "only repos whose name has this regular expression; several: any of them")
	flags.StringVarP(&q.branch, "branch", "b", "", "only branches with this in their name; HEAD is a repo's first branch")
	flags.BoolVar(&q.any, "any", false, "find files with any of the words of the QUERY: words that are rare in code count more, and files say which they lack")
	flags.BoolVar(&q.files, "files", false, "list the files that the rest of the query allows, one a line")
}

// text is the query of a command line.
func (q *queryFlags) text(args []string) (string, error) {
	words, patterns := strings.Join(args, " "), q.patterns
	if len(patterns) == 0 && (q.fixed || q.word) && words != "" {
		words, patterns = "", []string{words}
	}
	if strings.TrimSpace(words) == "" && len(patterns) == 0 && !q.files {
		return "", usageError{errors.New("the query is missing: give one, or --files to list files; see trawl search --help")}
	}
	if q.any && len(patterns) > 0 {
		return "", usageError{errors.New("--any is for the words of a QUERY, which is a pattern with -F, -w or -e: leave them out")}
	}
	if err := q.checkGlobs(); err != nil {
		return "", err
	}
	if _, err := languagesNamed(slices.Concat(q.types, q.notTypes)); err != nil {
		return "", err
	}
	if err := checkExpressions("r:", q.repos); err != nil {
		return "", err
	}
	if !q.fixed {
		if err := checkExpressions("content:", patterns); err != nil {
			return "", err
		}
	}
	scope := q.scope()
	inScope := words != "" && len(patterns)+len(scope) > 0
	if inScope { // its parentheses must not end those around it
		if err := checkSyntax(words, words, func(position int) int { return position }); err != nil {
			return "", err
		}
	}
	if words != "" && q.any {
		words = "match:any " + words
	}
	if inScope {
		words = "( " + words + " )" // it may hold an or
	}
	return strings.Join(append(nonEmpty(words, q.expression(patterns)), scope...), " "), nil
}

// checkExpressions refuses what is no expression, and shows the place in it. The router would name a place in the query that is made of it.
func checkExpressions(field string, expressions []string) error {
	for _, e := range expressions {
		place := func(position int) int { return query.UnquotedOffset(e, position-len(field)-len(`"`)) }
		if err := checkSyntax(field+query.Quote(e), e, place); err != nil {
			return err
		}
	}
	return nil
}

// checkSyntax refuses what is no query, and shows the place in the text that it was made of.
func checkSyntax(text, madeOf string, place func(position int) int) error {
	_, err := query.Parse(text, query.ParseOptions{SyntaxVersion: query.MaxSyntaxVersion})
	syntax, ok := errors.AsType[*query.SyntaxError](err)
	if !ok || !utf8.ValidString(madeOf) {
		return nil // the router says what is wrong
	}
	syntax.Position = place(syntax.Position)
	var b strings.Builder
	b.WriteString(syntax.Error())
	pointAt(&b, madeOf, syntax.Position)
	return usageError{errors.New(b.String())}
}

// surelyWords matches texts that begin and end with a word character of ASCII in any case: k and s have capitals beyond ASCII.
var surelyWords = regexp.MustCompile(`^[0-9A-JL-RT-Za-jl-rt-z_](\w*[0-9A-JL-RT-Za-jl-rt-z_])?$`)

// expression is the part of the query that looks for patterns in contents; "" without any.
func (q *queryFlags) expression(patterns []string) string {
	alternatives := make([]string, len(patterns))
	for i, p := range patterns {
		if q.fixed {
			p = regexp.QuoteMeta(p)
		}
		if q.word {
			if surelyWords.MatchString(p) {
				p = `\b` + p + `\b` // which the index knows
			}
			p = "(?P<" + regex.WholeWord + ">" + p + ")"
		}
		alternatives[i] = "content:" + query.Quote(p)
	}
	return anyOf(alternatives)
}

// scope are the parts that say where to look, and how.
func (q *queryFlags) scope() []string {
	var paths, without, types, repos []string
	for _, glob := range q.globs {
		if glob, not := strings.CutPrefix(glob, "!"); not {
			without = append(without, "-f:"+query.Quote(query.ExcludedGlob(glob)))
		} else {
			paths = append(paths, "path:"+query.Quote(glob))
		}
	}
	for _, name := range q.types {
		types = append(types, "lang:"+query.Quote(name))
	}
	for _, name := range q.notTypes {
		without = append(without, "-lang:"+query.Quote(name))
	}
	for _, name := range q.repos {
		repos = append(repos, "r:"+query.Quote(name))
	}
	parts := append(nonEmpty(anyOf(paths), anyOf(types), anyOf(repos)), without...)
	if q.branch != "" {
		parts = append(parts, "b:"+query.Quote(q.branch))
	}
	switch q.letters {
	case caseIgnored:
		parts = append(parts, "case:no")
	case caseSensitive:
		parts = append(parts, "case:yes")
	}
	if q.files {
		parts = append(parts, "type:file")
	}
	return parts
}

// anyOf joins alternatives to one term.
func anyOf(alternatives []string) string {
	if len(alternatives) < 2 {
		return strings.Join(alternatives, "")
	}
	return "( " + strings.Join(alternatives, " or ") + " )"
}

func nonEmpty(parts ...string) (all []string) {
	for _, p := range parts {
		if p != "" {
			all = append(all, p)
		}
	}
	return all
}
