package regex

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
)

// Bounds on an alternation that counts as one of literals.
const (
	maxLiterals  = 64
	maxExpansion = 4 << 10 // bytes of all literals together
)

// LiteralsOf returns the literals that the expression chooses from, if it is an
// alternation of literals. Its matches are then those of the first literal in
// the list that occurs at the leftmost place of any. Literals with a common
// beginning or end may be written, or parsed, as one expression: fo(o|x)(bar)?.
func LiteralsOf(tree *syntax.Regexp, caseSensitive bool) ([]Literal, bool) {
	list, ok := expand(tree, !caseSensitive)
	return list, ok && len(list) > 0 && each(list, func(l Literal) bool { return l.Text != "" })
}

// expand lists what a part matches, the preferred first.
func expand(tree *syntax.Regexp, fold bool) (list []Literal, ok bool) {
	switch tree.Op {
	case syntax.OpEmptyMatch:
		return empty, true
	case syntax.OpLiteral:
		list = split(tree, fold)
		return list, len(list) == 1 && list[0].Text != ""
	case syntax.OpCharClass:
		return expandClass(tree.Rune, fold)
	case syntax.OpCapture:
		if IsWholeWord(tree) {
			return nil, false
		}
		return expand(tree.Sub[0], fold)
	case syntax.OpConcat:
		return expandConcat(tree.Sub, fold)
	case syntax.OpAlternate:
		return expandAlternate(tree.Sub, fold)
	case syntax.OpQuest:
		if list, ok = expand(tree.Sub[0], fold); !ok {
			return nil, false
		}
		if tree.Flags&syntax.NonGreedy != 0 {
			return slices.Concat(empty, list), true
		}
		return slices.Concat(list, empty), true
	}
	return nil, false
}

// expandClass lists the runes of a class. Of those that fold together it lists
// one.
func expandClass(ranges []rune, fold bool) (list []Literal, ok bool) {
	runes, ok := enumerate(ranges, maxLiterals)
	if !ok {
		return nil, false
	}
	seen := map[rune]bool{}
	for _, r := range runes {
		if r == utf8.RuneError || !utf8.ValidRune(r) {
			return nil, false
		}
		if fold {
			r = ngram.Representative(r)
		}
		if !seen[r] {
			seen[r] = true
			list = append(list, Literal{string(r), !fold || uncased(string(r))})
		}
	}
	return list, true
}

func expandAlternate(subs []*syntax.Regexp, fold bool) (list []Literal, ok bool) {
	for _, sub := range subs {
		some, ok := expand(sub, fold)
		if !ok || len(list)+len(some) > maxLiterals {
			return nil, false
		}
		list = append(list, some...)
	}
	return list, true
}

// expandConcat orders by the preference of the first part, then by that of the
// second.
func expandConcat(subs []*syntax.Regexp, fold bool) (list []Literal, ok bool) {
	list = empty
	for _, sub := range subs {
		some, ok := expand(sub, fold)
		if !ok || len(list)*len(some) > maxLiterals {
			return nil, false
		}
		var longer []Literal
		size := 0
		for _, begin := range list {
			for _, end := range some {
				if begin.CaseSensitive != end.CaseSensitive && !uncased(begin.Text) && !uncased(end.Text) {
					return nil, false // case would count in a part only
				}
				l := begin.then(end)
				if size += len(l.Text); size > maxExpansion {
					return nil, false
				}
				longer = append(longer, l)
			}
		}
		list = longer
	}
	return list, true
}
