package regex

import (
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
)

// FixedLiteral returns the longest literal that every match has at the same
// offset, in bytes from its start, if there is one. It may be a single byte.
func FixedLiteral(tree *syntax.Regexp, caseSensitive bool) (lit Literal, offset int, ok bool) {
	f := fixedSearch{fold: !caseSensitive}
	f.visit(tree)
	return f.best, f.bestAt, f.best.Text != ""
}

// fixedSearch walks an expression from the left as long as what it has passed
// has a fixed length.
type fixedSearch struct {
	fold   bool
	at     int
	best   Literal
	bestAt int
}

// visit reports whether the part after the tree still has a fixed offset.
func (f *fixedSearch) visit(tree *syntax.Regexp) bool {
	begin := f.at
	switch tree.Op {
	case syntax.OpLiteral:
		if first := split(tree, f.fold)[0]; len(first.Text) > len(f.best.Text) {
			f.best, f.bestAt = first, begin
		}
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range tree.Sub {
			if !f.visit(sub) {
				return false
			}
		}
		return true
	case syntax.OpPlus, syntax.OpRepeat:
		if tree.Op == syntax.OpPlus || tree.Min > 0 {
			f.visit(tree.Sub[0])
		}
	}
	l := lengths(tree, f.fold)
	f.at = begin + l.min
	return l.min == l.max && l.max < unbounded
}

// split returns the text of a literal node in pieces, separated by runes that
// have no text: U+FFFD, which also matches invalid bytes, and halves of
// surrogate pairs. Pieces may be empty; there is at least one.
func split(tree *syntax.Regexp, fold bool) []Literal {
	fold = fold || tree.Flags&syntax.FoldCase != 0
	var pieces []Literal
	var b strings.Builder
	end := func() {
		text := b.String()
		pieces = append(pieces, Literal{text, !fold || uncased(text)})
		b.Reset()
	}
	for _, r := range tree.Rune {
		switch {
		case r == utf8.RuneError || !utf8.ValidRune(r):
			end()
		case fold:
			b.WriteRune(ngram.Representative(r))
		default:
			b.WriteRune(r)
		}
	}
	end()
	return pieces
}

// uncased reports whether no rune of the text has another case.
func uncased(text string) bool {
	for _, r := range text {
		if unicode.SimpleFold(r) != r {
			return false
		}
	}
	return true
}

// folded returns the text with each rune replaced by its representative.
func (n Literal) folded() string {
	if !n.CaseSensitive {
		return n.Text
	}
	return strings.Map(ngram.Representative, n.Text)
}

// then returns the literal followed by another. Case counts only if it does in
// both.
func (n Literal) then(o Literal) Literal {
	switch {
	case n.Text == "":
		return o
	case o.Text == "":
		return n
	}
	if n.CaseSensitive == o.CaseSensitive {
		return Literal{n.Text + o.Text, n.CaseSensitive}
	}
	return Literal{n.folded() + o.folded(), false}
}
