package regex

import (
	"regexp/syntax"
	"slices"

	"github.com/trawl-search/trawl/index/ngram"
)

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
