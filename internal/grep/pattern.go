package grep

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
)

// The patterns of trawl grep are regular expressions for lines, as ripgrep reads them.
//
// A search has two steps. A loose expression finds, in a whole text or in an index, every line that matches
// and perhaps a few more: the engines of package regex treat words and invalid UTF-8 as Go does. Where that
// differs from ripgrep, an exact expression then decides about the line.

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
}

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
	tree, err := ofLines(parsed)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", strings.Join(patterns, "|"), err)
	}
	p := &Pattern{}
	exact := "(" + regex.Source(tree, true) + ")"
	if opts.Words {
		other := "[" + classes()['w'].others + "]"
		exact = "(?:(?m:^)|" + other + ")" + exact + "(?:" + other + "|(?m:$))"
		tree = &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{{Op: syntax.OpWordBoundary}, tree, {Op: syntax.OpWordBoundary}}}
	}
	p.unsure = opts.Words || hasBoundary(tree)
	p.unsureInvalid = matchesInvalid(tree)
	if p.looseTree, err = syntax.Parse(regex.Source(loosen(tree), true), query.Flags); err != nil {
		return nil, fmt.Errorf("pattern %q, made looser: %w", source, err)
	}
	if p.loose, err = regex.NewMatcher(p.looseTree, true); err != nil {
		return nil, err
	}
	if p.machine, err = newMachine(exact); err != nil {
		return nil, err
	}
	if p.unsure {
		exactTree, err := syntax.Parse(exact, query.Flags)
		if err != nil {
			return nil, fmt.Errorf("parsing %q: %w", exact, err)
		}
		if exactTree, err = ofLines(exactTree); err != nil {
			return nil, err
		}
		if p.ascii, err = regex.NewMatcher(exactTree, true); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// join makes one expression of all patterns. Case is a flag in it: a class that is negated is folded before that, as in ripgrep.
func join(patterns []string, opts PatternOptions) (source string, err error) {
	var literal, capitals bool
	var alternatives []string
	for _, text := range patterns {
		if strings.Contains(text, "\n") {
			return "", fmt.Errorf("pattern %q: a line holds no line break; give several patterns with -e", text)
		}
		if opts.Fixed {
			text = escape(text)
		}
		d, err := translate(text)
		if err != nil {
			return "", err
		}
		if _, err := syntax.Parse(d.source, query.Flags); err != nil { // before it is joined with others
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

var errNewline = errors.New(`a line holds no line break: \n cannot match`)

// ofLines returns the expression without line breaks and captures. It uses the nodes of tree.
func ofLines(tree *syntax.Regexp) (*syntax.Regexp, error) {
	switch tree.Op {
	case syntax.OpCapture:
		return ofLines(tree.Sub[0])
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

// Next finds the next matching line of text, searching from the beginning of a line: [start, end) without its line
// break.
func (p *Pattern) Next(text []byte, from int) (start, end int, ok bool) {
	for from < len(text) {
		at, _, ok := p.loose.Find(text, from)
		if !ok || at == len(text) && text[at-1] == '\n' {
			return 0, 0, false // the end of the last line begins no other
		}
		start = from + bytes.LastIndexByte(text[from:at], '\n') + 1
		end = len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		if p.matches(text[start:end]) {
			return start, end, true
		}
		from = end + 1
	}
	return 0, 0, false
}

// matches decides about a line that loose found.
func (p *Pattern) matches(line []byte) bool {
	if p.isSure(line) {
		return true
	}
	if isASCII(line) {
		_, _, ok := p.ascii.Find(line, 0)
		return ok
	}
	_, _, ok := p.machine.find(line, 0)
	return ok
}

// isSure reports whether loose is exact in line.
func (p *Pattern) isSure(line []byte) bool {
	return !p.unsure && (!p.unsureInvalid || utf8.Valid(line))
}

func isASCII(text []byte) bool {
	for _, b := range text {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Matches are the successive matches in a line, including empty ones, except an empty one where
// another match ends.
func (p *Pattern) Matches(line []byte) iter.Seq2[int, int] {
	find := p.machine.find
	if p.isSure(line) {
		find = p.loose.Find
	}
	return func(yield func(start, end int) bool) {
		for from, last := 0, -1; from <= len(line); {
			start, end, ok := find(line, from)
			if !ok {
				return
			}
			from = end
			if start == end {
				_, size := utf8.DecodeRune(line[end:])
				from = end + max(size, 1)
			}
			if start == end && end == last {
				continue
			}
			last = end
			if !yield(start, end) {
				return
			}
		}
	}
}
