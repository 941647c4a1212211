package regex

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
)

// CrossesLines reports whether a match can contain a newline. If not, the
// matches in a text are those in each of its lines, unless SeesTextEnds.
func CrossesLines(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpAnyChar:
		return true
	case syntax.OpLiteral:
		return slices.Contains(tree.Rune, '\n')
	case syntax.OpCharClass:
		return classHas(tree.Rune, '\n')
	}
	return slices.ContainsFunc(tree.Sub, CrossesLines)
}

// Sprawls reports whether a match may go on through lines of any text, as (?s:.*) does and \s+ does not: it repeats, without a bound, what has both
// line breaks and letters.
func Sprawls(tree *syntax.Regexp) bool {
	open := tree.Op == syntax.OpStar || tree.Op == syntax.OpPlus || tree.Op == syntax.OpRepeat && tree.Max < 0
	return open && CrossesLines(tree) && hasLetters(tree) || slices.ContainsFunc(tree.Sub, Sprawls)
}

func hasLetters(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return true
	case syntax.OpLiteral:
		return slices.ContainsFunc(tree.Rune, unicode.IsLetter)
	case syntax.OpCharClass:
		for i := 0; i+1 < len(tree.Rune); i += 2 {
			if tree.Rune[i] <= 'z' && tree.Rune[i+1] >= 'a' || tree.Rune[i] <= 'Z' && tree.Rune[i+1] >= 'A' {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(tree.Sub, hasLetters)
}

// SeesTextEnds reports whether the expression has \A or \z, which match only at
// the ends of the text: it must not be run on single lines.
func SeesTextEnds(tree *syntax.Regexp) bool {
	if tree.Op == syntax.OpBeginText || tree.Op == syntax.OpEndText {
		return true
	}
	return slices.ContainsFunc(tree.Sub, SeesTextEnds)
}

// MinLen returns a lower bound on the bytes of a match.
func MinLen(tree *syntax.Regexp, caseSensitive bool) int {
	return lengths(tree, !caseSensitive).min
}

// MaxLen returns an upper bound on the bytes of a match; bounded is false if
// there is none, or none below 1 GiB.
func MaxLen(tree *syntax.Regexp, caseSensitive bool) (n int, bounded bool) {
	l := lengths(tree, !caseSensitive)
	return l.max, l.max < unbounded
}

const unbounded = 1 << 30

// span bounds a number of bytes. Both ends saturate at unbounded.
type span struct{ min, max int }

func (s span) plus(o span) span {
	return span{min(s.min+o.min, unbounded), min(s.max+o.max, unbounded)}
}

func (s span) or(o span) span { return span{min(s.min, o.min), max(s.max, o.max)} }

// times repeats a span; most < 0 means any number of times.
func (s span) times(least, most int) span {
	high := unbounded
	if s.max == 0 {
		high = 0
	} else if most >= 0 && s.max < unbounded/(most+1) {
		high = s.max * most
	}
	low := 0
	if least > 0 {
		low = min(s.min, unbounded/least) * least
	}
	return span{low, high}
}

func lengths(tree *syntax.Regexp, fold bool) span {
	switch tree.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return span{1, utf8.UTFMax}
	case syntax.OpLiteral:
		total := span{}
		for _, r := range tree.Rune {
			total = total.plus(width(r, fold || tree.Flags&syntax.FoldCase != 0))
		}
		return total
	case syntax.OpCharClass:
		return classWidth(tree.Rune, fold)
	case syntax.OpAlternate:
		all := lengths(tree.Sub[0], fold)
		for _, sub := range tree.Sub[1:] {
			all = all.or(lengths(sub, fold))
		}
		return all
	case syntax.OpStar:
		return lengths(tree.Sub[0], fold).times(0, -1)
	case syntax.OpPlus:
		return lengths(tree.Sub[0], fold).times(1, -1)
	case syntax.OpQuest:
		return lengths(tree.Sub[0], fold).times(0, 1)
	case syntax.OpRepeat:
		return lengths(tree.Sub[0], fold).times(tree.Min, tree.Max)
	}
	total := span{} // concatenations and captures; zero for the rest
	for _, sub := range tree.Sub {
		total = total.plus(lengths(sub, fold))
	}
	return total
}

// width bounds the bytes that a rune of a pattern matches. U+FFFD also matches
// an invalid byte; half of a surrogate pair matches nothing.
func width(r rune, fold bool) span {
	if r == utf8.RuneError || !utf8.ValidRune(r) {
		return span{1, utf8.UTFMax}
	}
	w := span{utf8.RuneLen(r), utf8.RuneLen(r)}
	if fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			w = w.or(span{utf8.RuneLen(f), utf8.RuneLen(f)})
		}
	}
	return w
}

func classWidth(ranges []rune, fold bool) span {
	runes, ok := enumerate(ranges, 256)
	if !ok || len(runes) == 0 {
		return span{1, utf8.UTFMax}
	}
	w := width(runes[0], fold)
	for _, r := range runes[1:] {
		w = w.or(width(r, fold))
	}
	return w
}

// enumerate lists the runes of a class if there are at most most.
func enumerate(ranges []rune, most int) ([]rune, bool) {
	var runes []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		if int(ranges[i+1]-ranges[i]) >= most-len(runes) {
			return nil, false
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			runes = append(runes, r)
		}
	}
	return runes, true
}

func classHas(ranges []rune, r rune) bool {
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}

// WithinWords reports whether every match consists of one or more word bytes, or runes
// that fold to them, and depends on nothing but the extended word that it is in (package
// ngram). Then an index of words knows all matches. \b and \B are allowed; ends of lines
// and expressions that can match the empty text are not.
func WithinWords(tree *syntax.Regexp, caseSensitive bool) bool {
	return !IsWholeWord(tree) && MinLen(tree, caseSensitive) > 0 && ofWords(tree)
}

func ofWords(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL,
		syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return false
	case syntax.OpLiteral:
		return !slices.ContainsFunc(tree.Rune, func(r rune) bool { return !isWordRune(r) })
	case syntax.OpCharClass:
		for i := 0; i+1 < len(tree.Rune); i += 2 {
			for r := tree.Rune[i]; r <= tree.Rune[i+1]; r++ {
				if !isWordRune(r) {
					return false // quickly, since word runes have few neighbours
				}
			}
		}
	}
	return !slices.ContainsFunc(tree.Sub, func(sub *syntax.Regexp) bool { return !ofWords(sub) })
}

// isWordRune reports whether a rune is a word byte, or folds to one.
func isWordRune(r rune) bool {
	return r < 0x80 && ngram.IsWord(byte(r)) || r == '\u017F' || r == '\u212A'
}
