package regex

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
)

// Analyze returns what a text must contain for the expression to match anywhere
// in it. The method is Russ Cox's (https://swtch.com/~rsc/regexp/regexp4.html):
// for each part the exact set of its matches if that is small, otherwise what
// its matches begin with, end with, and contain in between. The sets here have
// whole words, not trigrams, so that the index can choose among their n-grams.
//
// The result has at most about as many literals as the expression has
// alternatives. An error means that syntax.Parse cannot have made the tree.
func Analyze(tree *syntax.Regexp, caseSensitive bool) (Needs, error) {
	i, err := analyze(tree, !caseSensitive)
	if err != nil {
		return nil, err
	}
	return i.needs(), nil
}

// info is what is known of the matches of a part.
type info struct {
	exact bool
	words set // exact: the matches
	// Otherwise: each match begins with a word of prefix, ends with one of
	// suffix, and a text with a match holds inner.
	prefix, suffix set
	inner          Needs
}

func exactly(words set) info { return info{exact: true, words: words} }

// unknown is the info of a part that may match anything.
var unknown = info{prefix: empty, suffix: empty, inner: All{}}

func (i info) needs() Needs {
	if i.exact {
		return i.words.needs()
	}
	return i.inner
}

func (i info) begin() set {
	if i.exact {
		return i.words
	}
	return i.prefix
}

func (i info) end() set {
	if i.exact {
		return i.words
	}
	return i.suffix
}

func analyze(tree *syntax.Regexp, fold bool) (info, error) {
	switch tree.Op {
	case syntax.OpNoMatch:
		return exactly(nil), nil
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return exactly(empty), nil
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return unknown, nil
	case syntax.OpLiteral:
		return literal(tree, fold), nil
	case syntax.OpCharClass:
		return class(tree.Rune, fold), nil
	}
	subs := make([]info, len(tree.Sub))
	for i, sub := range tree.Sub {
		var err error
		if subs[i], err = analyze(sub, fold); err != nil {
			return info{}, err
		}
	}
	switch tree.Op {
	case syntax.OpCapture, syntax.OpConcat:
		return concat(subs), nil
	case syntax.OpAlternate:
		return alternate(subs), nil
	case syntax.OpStar:
		return star(subs[0]), nil
	case syntax.OpPlus:
		return plus(subs[0]), nil
	case syntax.OpQuest:
		return alternate([]info{subs[0], exactly(empty)}), nil
	case syntax.OpRepeat:
		return repeat(subs[0], tree.Min, tree.Max), nil
	}
	return info{}, fmt.Errorf("analyzing a regular expression: unknown operator %d", tree.Op)
}

// literal returns the info of a literal, between whose pieces there are unknown
// runes.
func literal(tree *syntax.Regexp, fold bool) info {
	var parts []info
	for i, piece := range split(tree, fold) {
		if i > 0 {
			parts = append(parts, unknown)
		}
		parts = append(parts, exactly(set{piece}))
	}
	return concat(parts)
}

// class returns the info of a character class: each of its runes if there are
// few. Runes that fold together count once.
func class(ranges []rune, fold bool) info {
	runes, ok := enumerate(ranges, 4*maxSet)
	if !ok {
		return unknown
	}
	groups := map[rune][]rune{}
	for _, r := range runes {
		if r == utf8.RuneError || !utf8.ValidRune(r) {
			return unknown
		}
		key := ngram.Representative(r)
		groups[key] = append(groups[key], r)
	}
	if len(groups) > maxSet {
		return unknown
	}
	var words set
	for key, members := range groups {
		word := Literal{string(members[0]), true}
		if fold || len(members) > 1 {
			word = Literal{string(key), uncased(string(key))}
		}
		words = append(words, word)
	}
	return exactly(words.normal())
}

// concat returns the info of successive parts. It goes from left to right with
// the run: the words that the last exact parts can form. A run ends at a part
// that is not exact, or that would give it too many words.
func concat(parts []info) info {
	run := empty
	whole := info{exact: true}
	var inner []Needs
	for _, part := range parts {
		joined, fits := product(run, part.begin())
		if fits && part.exact {
			run = joined
			continue
		}
		if whole.exact {
			whole.exact, whole.prefix = false, either(fits, joined, run)
		}
		inner = append(inner, either(fits, joined, run).needs())
		if !fits {
			joined, fits = overlap(run, part.begin())
		}
		if part.exact {
			run = either(fits, joined, part.words)
			continue
		}
		if fits {
			inner = append(inner, joined.needs())
		}
		inner = append(inner, part.inner)
		run = part.suffix
	}
	if whole.exact {
		return exactly(run)
	}
	whole.suffix = run
	whole.inner = and(append(inner, run.needs()))
	return whole
}

func either(first bool, a, b set) set {
	if first {
		return a
	}
	return b
}

// alternate returns the info of a choice between parts.
func alternate(parts []info) info {
	exact := true
	begins, endings := make([]set, len(parts)), make([]set, len(parts))
	inner := make([]Needs, len(parts))
	for i, part := range parts {
		exact = exact && part.exact
		begins[i], endings[i], inner[i] = part.begin(), part.end(), part.needs()
	}
	if words, fits := union(begins); exact && fits {
		return exactly(words)
	}
	return info{prefix: ends(begins, false), suffix: ends(endings, true), inner: or(inner)}
}

// star returns the info of any number of copies of the part, including none.
func star(part info) info {
	if part.exact && (len(part.words) == 0 || onlyEmpty(part.words)) {
		return exactly(empty)
	}
	return unknown
}

// plus returns the info of one or more copies of the part.
func plus(part info) info {
	if part.exact && !onlyEmpty(part.words) {
		return info{prefix: part.words, suffix: part.words, inner: part.words.needs()}
	}
	return part
}

func onlyEmpty(words set) bool { return len(words) == 1 && words[0].Text == "" }

// maxCopies is the most copies of a repeated part that are considered: enough
// for any literal that is worth looking up.
const maxCopies = 8

// repeat returns the info of least to most copies of the part; most < 0 means
// any number.
func repeat(part info, least, most int) info {
	if most == 0 {
		return exactly(empty)
	}
	if least == 0 && most == 1 {
		return alternate([]info{part, exactly(empty)})
	}
	copies := min(least, maxCopies)
	parts := slices.Repeat([]info{part}, copies)
	if copies < most || most < 0 {
		parts = append(parts, star(part))
	}
	return concat(parts)
}
