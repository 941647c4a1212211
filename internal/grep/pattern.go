package grep

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/internal/lazyregexp"
)

// Case says when capitals and small letters are the same.
type Case uint8

// Cases of a pattern.
const (
	Sensitive Case = iota
	Insensitive
	// Smart is Insensitive if the pattern has letters and none is a capital.
	Smart
)

// PatternOptions say how patterns are read.
type PatternOptions struct {
	Case Case
	// Fixed patterns are texts, not expressions.
	Fixed bool
	// Words matches only whole words: no letter, digit or underscore is next to a match.
	Words bool
	// Multiline lets a match be in several lines, if the patterns can match a line break.
	Multiline bool
	// Replacement stands in place of each match that is shown; $1 and ${name} in it are groups of the pattern. Nil shows matches.
	Replacement *string
}

// Pattern matches lines as ripgrep does. It is safe for concurrent use.
//
// It looks for a match in two steps. A loose expression finds, in a whole text and in an index, every line
// that matches and perhaps a few more: the engines of package regex know words and bytes that are not
// UTF-8 as Go does. Where that makes a difference, an exact one then decides about the line.
type Pattern struct {
	loose     regex.Matcher
	looseTree *syntax.Regexp

	// Whether loose may find a line that does not match: any line, or one that is not UTF-8.
	unsure, unsureInvalid bool
	ascii                 regex.Matcher // decides about lines in ASCII
	machine               *machine      // decides about other lines, and finds the matches in a line

	multiline   bool
	replacement *string
	expander    *regexp.Regexp // knows the names of groups
}

// lookaround is the beginning of a group that looks ahead or behind.
var lookaround = lazyregexp.New(`^\(\?<?[=!]`)

// NewPattern compiles patterns. A line matches if it matches one of them.
func NewPattern(patterns []string, opts PatternOptions) (*Pattern, error) {
	source, err := join(patterns, opts)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(source, query.Flags)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", strings.Join(patterns, "|"), err)
	}
	tree := parsed
	p := &Pattern{multiline: opts.Multiline && (opts.Words || mayHold(parsed, '\n'))}
	if opts.Replacement != nil {
		text := expandable(*opts.Replacement)
		p.replacement = &text
	}
	if !p.multiline {
		if tree, err = ofLines(parsed); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", strings.Join(patterns, "|"), err)
		}
	}
	whole := parsed.MaxCap() + 1
	exact := &syntax.Regexp{Op: syntax.OpCapture, Cap: whole, Sub: []*syntax.Regexp{tree}}
	tree = withoutGroups(tree)
	if opts.Words {
		if exact, err = betweenOthers(exact); err != nil {
			return nil, err
		}
		tree = &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{{Op: syntax.OpWordBoundary}, tree, {Op: syntax.OpWordBoundary}}}
	}
	p.unsure = opts.Words || hasBoundary(tree)
	p.unsureInvalid = mayHold(tree, utf8.RuneError)
	if p.looseTree, err = syntax.Parse(regex.Source(loosen(tree), true), query.Flags); err != nil {
		return nil, fmt.Errorf("pattern %q, made looser: %w", source, err)
	}
	if p.loose, err = regex.NewMatcher(p.looseTree, true); err != nil {
		return nil, err
	}
	if p.unsure {
		if p.ascii, err = regex.NewMatcher(withoutGroups(exact), true); err != nil {
			return nil, err
		}
	}
	if p.machine, err = newMachine(exact, whole); err != nil {
		return nil, err
	}
	if p.machine.groups = p.replacement != nil; p.machine.groups {
		if p.expander, err = regexp.Compile(source); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", source, err)
		}
	}
	return p, nil
}

// reference is what stands for a group in a replacement, or for a dollar.
var reference = lazyregexp.New(`\$(\$|\w+|\{\w+\})?`)

// expandable writes a replacement for regexp.Expand, which takes letters beyond ASCII for parts of names, and $01 for one: ripgrep does not.
func expandable(replacement string) string {
	return reference().ReplaceAllStringFunc(replacement, func(found string) string {
		name := strings.Trim(found, "${}")
		if name == "" {
			return "$$"
		}
		if n, err := strconv.Atoi(name); err == nil {
			name = strconv.Itoa(n)
		}
		return "${" + name + "}"
	})
}

// betweenOthers puts what is not part of a word, or an end of the line, on either side of an expression.
func betweenOthers(tree *syntax.Regexp) (*syntax.Regexp, error) {
	other := "[" + classes()['w'].others + "]"
	sides := make([]*syntax.Regexp, 2)
	for i, side := range []string{"(?m:^)|" + other, other + "|(?m:$)"} {
		parsed, err := syntax.Parse(side, query.Flags)
		if err != nil {
			return nil, fmt.Errorf("parsing %q: %w", side, err)
		}
		if sides[i], err = ofLines(parsed); err != nil {
			return nil, err
		}
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{sides[0], tree, sides[1]}}, nil
}

// join makes one expression of all patterns. Case is a flag in it: a class that is negated is folded before that, as in ripgrep.
func join(patterns []string, opts PatternOptions) (source string, err error) {
	var literal, capitals bool
	var alternatives []string
	for _, text := range patterns {
		if strings.Contains(text, "\n") && !opts.Multiline {
			return "", fmt.Errorf("pattern %q: a line holds no line break; give several patterns with -e, or search several lines with -U", text)
		}
		if opts.Fixed {
			text = escape(text)
		}
		d, err := translate(text)
		if err != nil {
			return "", err
		}
		_, err = syntax.Parse(d.source, query.Flags) // before it is joined with others
		bad, ok := errors.AsType[*syntax.Error](err)
		switch {
		case ok && lookaround().MatchString(bad.Expr):
			return "", fmt.Errorf("pattern %q: lookaround, such as %s, does not exist in RE2", text, bad.Expr)
		case ok && len(bad.Expr) > len(text): // \w and its like are written out in it
			return "", fmt.Errorf("pattern %q: %v", text, bad.Code)
		case err != nil:
			return "", fmt.Errorf("pattern %q: %w", text, err)
		}
		literal, capitals = literal || d.literal, capitals || d.capitals
		alternatives = append(alternatives, "(?:"+d.source+")")
	}
	source = strings.Join(alternatives, "|")
	if opts.Case == Insensitive || opts.Case == Smart && literal && !capitals {
		source = "(?i:" + source + ")"
	}
	return source, nil
}

// escape makes an expression of a text.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`\.+*?()|[]{}^$-&~#`, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

var errNewline = errors.New(`a line holds no line break: \n cannot match; -U searches several lines`)

// ofLines returns the expression without line breaks. It uses the nodes of tree.
func ofLines(tree *syntax.Regexp) (*syntax.Regexp, error) {
	switch tree.Op {
	case syntax.OpLiteral:
		if slices.Contains(tree.Rune, '\n') {
			return nil, errNewline
		}
	case syntax.OpCharClass:
		return classOfLines(tree)
	case syntax.OpAnyChar:
		tree.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText, syntax.OpEndText:
		return nil, errors.New("lines are searched, whose ends are ^ and $ with the flag m")
	}
	for i, sub := range tree.Sub {
		var err error
		if tree.Sub[i], err = ofLines(sub); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// withoutGroups returns the expression without captures. It leaves tree as it is.
func withoutGroups(tree *syntax.Regexp) *syntax.Regexp {
	if tree.Op == syntax.OpCapture {
		return withoutGroups(tree.Sub[0])
	}
	if len(tree.Sub) == 0 {
		return tree
	}
	plain := *tree
	plain.Sub = make([]*syntax.Regexp, len(tree.Sub))
	for i, sub := range tree.Sub {
		plain.Sub[i] = withoutGroups(sub)
	}
	return &plain
}

// classOfLines takes the line break out of a class.
func classOfLines(tree *syntax.Regexp) (*syntax.Regexp, error) {
	var ranges []rune
	for i := 0; i+1 < len(tree.Rune); i += 2 {
		lo, hi := tree.Rune[i], tree.Rune[i+1]
		if lo > '\n' || hi < '\n' {
			ranges = append(ranges, lo, hi)
			continue
		}
		if lo < '\n' {
			ranges = append(ranges, lo, '\n'-1)
		}
		if hi > '\n' {
			ranges = append(ranges, '\n'+1, hi)
		}
	}
	if len(ranges) == 0 && len(tree.Rune) > 0 {
		return nil, errNewline
	}
	tree.Rune = ranges
	return tree, nil
}

// Needs is a query that matches every text with a matching line, nil if that may be any text.
func (p *Pattern) Needs() query.Q {
	needs, err := regex.Analyze(p.looseTree, true)
	if _, all := needs.(regex.All); all || err != nil { // an error says that the expression is too large to be looked up
		return nil
	}
	return &query.Regexp{Tree: p.looseTree, CaseSensitive: true, Scope: query.Content}
}

// IsExact reports whether each text that matches Needs has a matching line.
func (p *Pattern) IsExact() bool { return !p.unsure && !p.unsureInvalid }
