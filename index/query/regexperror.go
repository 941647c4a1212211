package query

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// regexpError turns an error of regexp/syntax into one with a position in the
// query and advice, or into the limit that was exceeded.
func (p *parser) regexpError(tok token, flags syntax.Flags, bad *syntax.Error) error {
	text := string(tok.text)
	if limit := limitOf(bad, p.limits); limit != nil {
		return limit
	}
	at := errorOffset(text, flags, bad)
	found := quote(bad.Expr)
	switch bad.Code {
	case syntax.ErrMissingParen:
		found = `"(" without its ")"`
		if !strings.HasPrefix(text[at:], "(") {
			found = "a regular expression whose parentheses do not balance"
		}
	case syntax.ErrUnexpectedParen:
		found = `")" without its "("`
	case syntax.ErrTrailingBackslash:
		found = `a \ at the end of a regular expression`
	}
	return &SyntaxError{tok.at[at], found, p.regexpAdvice(tok, bad)}
}

func limitOf(bad *syntax.Error, l Limits) error {
	switch bad.Code {
	case syntax.ErrNestingDepth:
		return &LimitError{LimitDepth, maxNesting + 1, maxNesting}
	case syntax.ErrLarge:
		return &LimitError{LimitProgram, l.Program + 1, l.Program}
	case syntax.ErrInvalidRepeatSize:
		low, high, _ := strings.Cut(strings.Trim(bad.Expr, "{}?"), ",")
		least, _ := strconv.Atoi(low)
		most, _ := strconv.Atoi(high)
		if high != "" && most < least && most <= maxRepetition && least <= maxRepetition {
			return nil // {3,2}: a mistake, not a size
		}
		return &LimitError{LimitRepetition, max(least, most, l.Repetition+1), l.Repetition}
	}
	return nil
}

// maxNesting is the deepest nesting of groups that regexp/syntax allows.
const maxNesting = 1000

func (p *parser) regexpAdvice(tok token, bad *syntax.Error) string {
	switch bad.Code {
	case syntax.ErrMissingParen:
		if tok.end < len(p.in) && (p.in[tok.end] == ' ' || p.in[tok.end] == '\t') {
			return `")" before the space; put the expression in quotes to search for the space, or write \( to search for a parenthesis`
		}
		return `a closing ")"; write \( to search for a parenthesis`
	case syntax.ErrUnexpectedParen:
		return `a "(" before it; write \) (in quotes \\)) to search for a parenthesis`
	case syntax.ErrMissingBracket:
		if tok.end < len(p.in) && p.in[tok.end] == ')' {
			return `"]" before the ")", which closes a group here; write \) within the class, or \[ to search for a bracket`
		}
		return `a closing "]"; write \[ to search for a bracket`
	case syntax.ErrMissingRepeatArgument:
		if tok.start > 0 && p.in[tok.start-1] == '(' && strings.HasPrefix(string(tok.text), "?") {
			return `the group to hold no space: with one, "(" groups terms; put the expression in quotes`
		}
		if strings.HasPrefix(bad.Expr, "*") {
			return `something to repeat before it: .* stands for any text, as * does in a glob; write \* to search for the character`
		}
		return fmt.Sprintf(`something to repeat before it; write \%s to search for the character`, bad.Expr[:1])
	case syntax.ErrInvalidRepeatOp:
		return `one repetition of a term; use parentheses to repeat a repetition, or \ before a character to search for it`
	case syntax.ErrInvalidRepeatSize:
		return "the smaller count first, as in {2,3}"
	case syntax.ErrInvalidCharRange:
		return "a range whose ends ascend, as in [a-z], or a class name that RE2 knows"
	case syntax.ErrInvalidEscape:
		return `an escape that RE2 knows (such as \d \w \s \b \n); write \\ to search for one \`
	case syntax.ErrInvalidPerlOp:
		return knownGroups
	case syntax.ErrInvalidNamedCapture:
		if strings.HasPrefix(bad.Expr, "(?<=") || strings.HasPrefix(bad.Expr, "(?<!") {
			return knownGroups
		}
		return "a name of letters, digits and _ that is used once, as in (?P<name>...)"
	case syntax.ErrTrailingBackslash:
		return `a character after it; write \\ (in quotes \\\\) to search for one \`
	}
	return "a regular expression in RE2 syntax: " + string(bad.Code)
}

const knownGroups = `a group that RE2 knows: (?:...), (?i), (?s), (?m), (?U) or (?P<name>...); lookaround and backreferences do not exist; write \(\? to search for "(?"`

// errorOffset finds the place of the error in text. The error has the offending
// part but not its place. Since parsing goes from left to right, a prefix of
// the text fails in the same way if and only if it contains the place.
func errorOffset(text string, flags syntax.Flags, bad *syntax.Error) int {
	switch bad.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		return parenOffset(text)
	case syntax.ErrMissingBracket: // the part reaches to the end
		return max(0, len(text)-len(bad.Expr))
	case syntax.ErrTrailingBackslash:
		return len(text) - 1
	}
	var places []int
	for i := 0; i+len(bad.Expr) <= len(text); i++ {
		if utf8.RuneStart(text[i]) && strings.HasPrefix(text[i:], bad.Expr) {
			places = append(places, i)
		}
	}
	i := sort.Search(len(places), func(i int) bool {
		_, err := syntax.Parse(text[:places[i]+len(bad.Expr)], flags)
		same, ok := errors.AsType[*syntax.Error](err)
		return ok && *same == *bad
	})
	if i == len(places) {
		return 0
	}
	return places[i]
}

// parenOffset finds the first closing parenthesis without an opening one, or
// else the last opening one without a closing one.
func parenOffset(text string) int {
	var open []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if !strings.HasPrefix(text[i:], `\Q`) {
				i++
			} else if end := strings.Index(text[i:], `\E`); end >= 0 {
				i += end + 1
			} else {
				i = len(text)
			}
		case '[':
			i = skipClass(text, i)
		case '(':
			open = append(open, i)
		case ')':
			if len(open) == 0 {
				return i
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 {
		return 0
	}
	return open[len(open)-1]
}

// skipClass returns the index of the closing bracket of the class that opens at
// i.
func skipClass(text string, i int) int {
	j := i + 1
	if strings.HasPrefix(text[j:], "^") {
		j++
	}
	for first := true; j < len(text); first = false {
		switch {
		case text[j] == ']' && !first:
			return j
		case text[j] == '\\':
			j++
		case strings.HasPrefix(text[j:], "[:"):
			if end := strings.Index(text[j:], ":]"); end >= 0 {
				j += end + 1
			}
		}
		j++
	}
	return j
}
