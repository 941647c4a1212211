package mcptools

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// maxPatterns bounds the patterns of one call: they share the budget.
const maxPatterns = 8

type grepArgs struct {
	Patterns   []string `json:"patterns" jsonschema:"1 to 8 regular expressions (RE2), each answered by itself"`
	Literal    bool     `json:"literal,omitempty" jsonschema:"the patterns are plain text"`
	IgnoreCase bool     `json:"ignore_case,omitempty" jsonschema:"search without regard to case"`
	Scope
	Context uint32 `json:"context,omitempty" jsonschema:"lines shown before and after each match, 0 to 20"`
	Detail  Detail `json:"detail,omitempty" jsonschema:"default auto: the first of lines, short, numbers, files, directories in which everything fits; a fixed one is given in pages"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"cursor of an earlier answer to the same arguments"`
	Limit
}

// ladder are all rungs.
var ladder = []Detail{Lines, ShortLines, LineNumbers, Files, Directories}

func (c *call) grep(ctx context.Context, in grepArgs) (*answer, error) {
	if len(in.Patterns) == 0 || len(in.Patterns) > maxPatterns {
		return nil, plainError(fmt.Sprintf("patterns: %d given, want 1 to %d", len(in.Patterns), maxPatterns))
	}
	rungs, err := rungsOf(in.Detail, ladder)
	if err != nil {
		return nil, err
	}
	own := in
	own.MaxTokens, own.Cursor = 0, ""
	from, err := decodeCursor(in.Cursor, markOf("grep", own))
	if err != nil {
		return nil, err
	}
	finds := make([]find, len(in.Patterns))
	for i, pattern := range in.Patterns {
		if pattern == "" {
			return nil, plainError("patterns: an empty pattern matches everywhere: glob lists files")
		}
		finds[i] = grepFind(pattern, in)
		finds[i].ladder, finds[i].fixed = rungs, len(rungs) == 1
		if len(in.Patterns) > 1 {
			finds[i].label = cut(clean([]byte(strings.ReplaceAll(pattern, "\n", `\n`))), 60)
		}
	}
	return c.search(ctx, in.Scope, finds, from, in.Cursor != "")
}

// grepFind is the query of one pattern.
func grepFind(pattern string, in grepArgs) find {
	const content = "content:"
	f := find{text: pattern, context: min(in.Context, 20)}
	f.locate = func(p int) int { return query.UnquotedOffset(f.text, p-len(content)-1) }
	if in.Literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	f.literalHint = !in.Literal
	f.pattern = content + query.Quote(pattern)
	scope := in.query()
	if scope != "" {
		scope = "(case:auto " + scope + " )" // the case of the pattern is not that of globs
	}
	f.query, f.anyCase = join(f.pattern, "case:yes", scope), join(f.pattern, "case:no", scope)
	if in.IgnoreCase {
		f.query, f.anyCase = f.anyCase, ""
	}
	return f
}

// rungsOf are the rungs for a requested detail.
func rungsOf(detail Detail, ladder []Detail) ([]Detail, error) {
	if detail == "" || detail == "auto" {
		return ladder, nil
	}
	if !slices.Contains(ladder, detail) {
		return nil, plainError(fmt.Sprintf("detail: %s is unknown: want auto or one of %v", shown(string(detail), 50), ladder))
	}
	return []Detail{detail}, nil
}

type searchArgs struct {
	Query string `json:"query" jsonschema:"words that must all be in a file, in any order; may hold quotes, or, -word, regular expressions, and fields such as lang:go f:path r:repo"`
	Scope
	Cursor string `json:"cursor,omitempty" jsonschema:"cursor of an earlier answer to the same arguments"`
	Limit
}

// bestLines is how many lines with matches a ranked answer shows of a file.
const bestLines = 8

func (c *call) ranked(ctx context.Context, in searchArgs) (*answer, error) {
	if strings.TrimSpace(in.Query) == "" {
		return nil, plainError("query: it is empty: glob and list_tree list files")
	}
	_, asks, err := searchapi.ParseAnswer(in.Query, syntaxVersion) // by itself: its parentheses must not end those around it
	if err != nil {
		return nil, (&find{text: in.Query, query: in.Query}).inPattern(err)
	}
	if asks.Select != query.SelectFiles {
		return nil, plainError("query: select: lists repos or folders, and this tool lists files: use grep with detail directories, or list_repos")
	}
	own := in
	own.MaxTokens, own.Cursor = 0, ""
	from, err := decodeCursor(in.Cursor, markOf("search", own))
	if err != nil {
		return nil, err
	}
	f := find{text: in.Query, ladder: []Detail{ShortLines}, fixed: true, perFile: bestLines}
	f.query, f.locate = in.Query, func(p int) int { return p }
	if scope := in.query(); scope != "" {
		f.query, f.locate = "("+in.Query+" ) "+scope, func(p int) int { return p - 1 }
	}
	if words := plainWords(in.Query); len(words) > 1 && in.Cursor == "" {
		probe, err := c.first(ctx, f.query)
		if err != nil {
			return nil, f.inPattern(err)
		}
		from.Any = len(probe.GetFiles()) == 0 && probe.GetCoverage().GetComplete()
	}
	if from.Any {
		f.label = "no file has all words; files with any of them"
		asked := in.Query
		if telling := tellingWords(asked); telling != strings.Join(strings.Fields(asked), " ") {
			asked = telling
			f.label = "no file has all words; files with any of: " + cut(clean([]byte(asked)), 200)
		}
		f.query = join("("+asked+" match:any )", in.query())
	}
	return c.search(ctx, in.Scope, []find{f}, from, in.Cursor != "")
}

// stopWords are the words of questions that say nothing about code. Few comments have them, so that they would count as rare.
var stopWords = strings.Fields("a an and are as at be been by can could did do does for from had has have how i in into is it its me my of on our " +
	"should so than that the their them then there these they this those to us was we were what when where which who why will with would you your")

// tellingWords are the words of a question without stop words and punctuation, or all if it has no others.
func tellingWords(question string) string {
	var telling []string
	words := strings.Fields(question)
	for _, w := range words {
		if w := strings.TrimRight(w, "?,!"); w != "" && !slices.Contains(stopWords, strings.ToLower(w)) {
			telling = append(telling, w)
		}
	}
	if len(telling) == 0 {
		telling = words
	}
	return strings.Join(telling, " ")
}

// plainWords are the words of a query that consists of words only.
func plainWords(query string) []string {
	words := strings.Fields(query)
	for _, w := range words {
		if w == "or" || strings.ContainsAny(w, `:"()-\`) {
			return nil
		}
	}
	return words
}
