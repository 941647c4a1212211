package regex

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// alphabet is small, so that equal runes are often drawn twice. It has runes
// that fold to others of another length, one that stands for invalid bytes, one
// that no text can have, and the newline.
var alphabet = []rune{'a', 'b', 'f', 'o', 'o', 'k', 'K', '\u212A', 's', 'S', 'ſ', 'é', 'É', '日', '本', '1', '_', ' ', '\n', '😀', utf8.RuneError, 0xD800}

var leaves = []syntax.Op{syntax.OpLiteral, syntax.OpLiteral, syntax.OpLiteral, syntax.OpLiteral, syntax.OpLiteral, syntax.OpLiteral,
	syntax.OpCharClass, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpBeginLine, syntax.OpEndLine,
	syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpEmptyMatch, syntax.OpNoMatch}

var branches = []syntax.Op{syntax.OpConcat, syntax.OpConcat, syntax.OpConcat, syntax.OpAlternate, syntax.OpAlternate,
	syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat, syntax.OpCapture}

// drawTree draws any tree, including those that no pattern produces.
func drawTree(t *rapid.T, depth int) *syntax.Regexp {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		return drawLeaf(t)
	}
	tree := &syntax.Regexp{Op: rapid.SampledFrom(branches).Draw(t, "op")}
	subs := 1
	switch tree.Op {
	case syntax.OpConcat, syntax.OpAlternate:
		subs = rapid.IntRange(1, 5).Draw(t, "subs")
	case syntax.OpRepeat:
		tree.Min = rapid.IntRange(0, 3).Draw(t, "min")
		tree.Max = rapid.SampledFrom([]int{-1, tree.Min, tree.Min + 1, tree.Min + 4}).Draw(t, "max")
	}
	if rapid.Bool().Draw(t, "lazy") {
		tree.Flags |= syntax.NonGreedy
	}
	for range subs {
		tree.Sub = append(tree.Sub, drawTree(t, depth-1))
	}
	return tree
}

func drawLeaf(t *rapid.T) *syntax.Regexp {
	tree := &syntax.Regexp{Op: rapid.SampledFrom(leaves).Draw(t, "op")}
	switch tree.Op {
	case syntax.OpLiteral:
		tree.Rune = rapid.SliceOfN(rapid.SampledFrom(alphabet), 1, 6).Draw(t, "literal")
		if rapid.IntRange(0, 3).Draw(t, "fold") == 0 {
			tree.Flags |= syntax.FoldCase
		}
	case syntax.OpCharClass:
		tree.Rune = drawClass(t)
	}
	return tree
}

func drawClass(t *rapid.T) []rune {
	runes := rapid.SliceOfNDistinct(rapid.SampledFrom(alphabet), 1, 5, rapid.ID).Draw(t, "class")
	slices.Sort(runes)
	var ranges []rune
	for _, r := range runes {
		if n := len(ranges); n > 0 && ranges[n-1] >= r-1 {
			ranges[n-1] = max(r, ranges[n-1])
			continue
		}
		ranges = append(ranges, r, r+rune(rapid.SampledFrom([]int{0, 0, 0, 2, 30}).Draw(t, "width")))
	}
	if rapid.IntRange(0, 3).Draw(t, "negated") == 0 {
		return complement(ranges)
	}
	return ranges
}

func complement(ranges []rune) []rune {
	var others []rune
	next := rune(0)
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] > next {
			others = append(others, next, ranges[i]-1)
		}
		next = ranges[i+1] + 1
	}
	return append(others, next, unicode.MaxRune)
}

// drawText appends a text that the tree probably matches: only empty-width
// operators are left to chance.
func drawText(t *rapid.T, text []byte, tree *syntax.Regexp, fold bool) []byte {
	fold = fold || tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase != 0
	times := 1
	switch tree.Op {
	case syntax.OpLiteral:
		for _, r := range tree.Rune {
			text = appendRune(t, text, r, fold)
		}
	case syntax.OpCharClass:
		i := 2 * rapid.IntRange(0, len(tree.Rune)/2-1).Draw(t, "range")
		text = appendRune(t, text, rapid.SampledFrom(tree.Rune[i:i+2]).Draw(t, "end"), fold)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		text = appendRune(t, text, rapid.SampledFrom(alphabet).Draw(t, "any"), false)
	case syntax.OpAlternate:
		return drawText(t, text, rapid.SampledFrom(tree.Sub).Draw(t, "alternative"), fold)
	case syntax.OpStar:
		times = rapid.IntRange(0, 2).Draw(t, "times")
	case syntax.OpPlus:
		times = rapid.IntRange(1, 3).Draw(t, "times")
	case syntax.OpQuest:
		times = rapid.IntRange(0, 1).Draw(t, "times")
	case syntax.OpRepeat:
		times = rapid.IntRange(tree.Min, max(tree.Min+2, tree.Max)).Draw(t, "times")
	}
	for range times {
		for _, sub := range tree.Sub {
			text = drawText(t, text, sub, fold)
		}
	}
	return text
}

func appendRune(t *rapid.T, text []byte, r rune, fold bool) []byte {
	if fold {
		for range rapid.IntRange(0, 2).Draw(t, "other case") {
			r = unicode.SimpleFold(r)
		}
	}
	if r == utf8.RuneError && rapid.Bool().Draw(t, "invalid") {
		return append(text, rapid.SampledFrom([]byte{0xFF, 0x89, 0xC3, 0xE6}).Draw(t, "byte"))
	}
	return utf8.AppendRune(text, r)
}

// drawNoise draws the text around a match.
func drawNoise(t *rapid.T) []byte {
	var text []byte
	for _, r := range rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 4).Draw(t, "noise") {
		text = appendRune(t, text, r, false)
	}
	return text
}
