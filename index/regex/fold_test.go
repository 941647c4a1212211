package regex

import (
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// TestFoldable compares the list with all runes.
func TestFoldable(t *testing.T) {
	var want []rune
	for r := range rune(unicode.MaxRune + 1) {
		if unicode.SimpleFold(r) != r {
			want = append(want, r)
		}
	}
	if !slices.Equal(foldable(), want) {
		t.Errorf("%d runes fold, want %d", len(foldable()), len(want))
	}
}

// TestFoldClass: a class is folded as the standard library folds it under (?i).
func TestFoldClass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		end := rapid.OneOf(rapid.RuneFrom([]rune("AZaz09_kKsſßẞıİΣςσ\u212A\U0001E900\U0001E943\U0010FFFF\x00")), rapid.Int32Range(0, 0x600), rapid.Int32Range(0, unicode.MaxRune))
		var ranges []rune
		for range rapid.IntRange(1, 4).Draw(t, "ranges") {
			a, b := end.Draw(t, "a"), end.Draw(t, "b")
			ranges = append(ranges, min(a, b), max(a, b))
		}
		if rapid.Bool().Draw(t, "all but some") {
			ranges = append(ranges, 0, 'A'-1, 0x1E944, unicode.MaxRune)
		}
		class := syntax.Regexp{Op: syntax.OpCharClass, Rune: joinRanges(ranges)}
		want := parseClass(t, "(?i:"+class.String()+")")
		var b strings.Builder
		writeClass(&b, class.Rune, true)
		if got := parseClass(t, b.String()); !slices.Equal(got, want) {
			t.Fatalf("%s becomes %s: %x, want %x", class.String(), b.String(), got, want)
		}
	})
}

// parseClass returns the ranges of an expression that is a class, a single rune or
// any rune.
func parseClass(t interface{ Fatal(...any) }, pattern string) []rune {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	switch tree.Op {
	case syntax.OpAnyChar:
		return anyRune
	case syntax.OpAnyCharNotNL:
		return notNL
	case syntax.OpLiteral:
		if tree.Flags&syntax.FoldCase != 0 {
			return addFolds([]rune{tree.Rune[0], tree.Rune[0]})
		}
		return []rune{tree.Rune[0], tree.Rune[0]}
	case syntax.OpNoMatch:
		return nil
	}
	return tree.Rune
}
