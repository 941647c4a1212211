package indextest

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/query"
)

// expression finds with the standard library. A look at the tree saves most of the time: if every
// match contains one of a few literals, and if none can cross the end of a line.
func expression(q *query.Regexp, re *regexp.Regexp) finder {
	some, plain := requiredBy(q), wholeText(re)
	if inLines(q.Tree) {
		return lineByLine(re, some)
	}
	if some == nil {
		return plain
	}
	return func(t *text) ([]Range, bool) {
		if !slices.ContainsFunc(some, func(l literal) bool { return l.next(t, 0) < len(t.bytes) }) {
			return nil, false
		}
		return plain(t)
	}
}

// wholeText finds with the standard library alone.
func wholeText(re *regexp.Regexp) finder {
	return func(t *text) ([]Range, bool) {
		return appendRanges(nil, re, t.bytes, 0)
	}
}

// appendRanges appends the ranges found in a part of a text that begins at base.
func appendRanges(ranges []Range, re *regexp.Regexp, part []byte, base int) ([]Range, bool) {
	found := re.FindAllIndex(part, -1)
	for _, loc := range found {
		if loc[0] < loc[1] {
			ranges = append(ranges, Range{base + loc[0], base + loc[1]})
		}
	}
	return ranges, found != nil
}

// inLines reports whether a match lies within one line and depends on no other line. \b takes the
// end of a line for the end of a word, as it does at the end of the text.
func inLines(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpAnyChar, syntax.OpBeginText, syntax.OpEndText:
		return false
	case syntax.OpLiteral:
		return !slices.Contains(tree.Rune, '\n')
	case syntax.OpCharClass:
		for i := 0; i < len(tree.Rune); i += 2 {
			if tree.Rune[i] <= '\n' && '\n' <= tree.Rune[i+1] {
				return false
			}
		}
	}
	return !slices.ContainsFunc(tree.Sub, func(sub *syntax.Regexp) bool { return !inLines(sub) })
}

// lineByLine searches the lines with one of the literals, or all lines if there are no literals.
func lineByLine(re *regexp.Regexp, some []literal) finder {
	return func(t *text) (ranges []Range, found bool) {
		next := make([]int, len(some)) // next place of each literal
		for i := range next {
			next[i] = -1
		}
		for begin := 0; begin <= len(t.bytes); {
			at := begin
			if some != nil {
				at = len(t.bytes) + 1
				for i, l := range some {
					if next[i] < begin {
						next[i] = l.next(t, begin)
					}
					at = min(at, next[i])
				}
				if at >= len(t.bytes) {
					return ranges, found
				}
			}
			begin += bytes.LastIndexByte(t.bytes[begin:at], '\n') + 1
			end := len(t.bytes)
			if i := bytes.IndexByte(t.bytes[at:], '\n'); i >= 0 {
				end = at + i
			}
			var here bool
			ranges, here = appendRanges(ranges, re, t.bytes[begin:end], begin)
			found, begin = found || here, end+1
		}
		return ranges, found
	}
}

// requiredBy returns literals such that every match contains one of them; nil if it knows none.
func requiredBy(q *query.Regexp) []literal { return required(q.Tree, !q.CaseSensitive) }

func required(tree *syntax.Regexp, fold bool) (some []literal) {
	switch tree.Op {
	case syntax.OpLiteral:
		l := literal{string(tree.Rune), !fold && tree.Flags&syntax.FoldCase == 0}
		// U+FFFD also stands for an invalid byte.
		if l.quick() && !strings.ContainsRune(l.text, utf8.RuneError) {
			return []literal{l}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(tree.Sub[0], fold)
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return required(tree.Sub[0], fold)
		}
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			if r := required(sub, fold); shortest(r) > shortest(some) {
				some = r
			}
		}
	case syntax.OpAlternate:
		for _, sub := range tree.Sub {
			r := required(sub, fold)
			if r == nil {
				return nil
			}
			some = append(some, r...)
		}
	}
	return some
}

// shortest returns the length of the shortest literal, 0 if there is none.
func shortest(some []literal) int {
	least := 0
	for i, l := range some {
		if i == 0 || len(l.text) < least {
			least = len(l.text)
		}
	}
	return least
}
