package ngram

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestFoldRuneIsOnePerOrbit(t *testing.T) {
	for r := rune(-1); r <= unicode.MaxRune+1; r++ {
		got := FoldRune(r)
		if want := modelFold(r); got != want {
			t.Fatalf("FoldRune(%U) = %U, want %U", r, got, want)
		}
		if next := unicode.SimpleFold(r); FoldRune(next) != got {
			t.Fatalf("%U and %U fold apart", r, next)
		}
		if utf8.RuneLen(got) > utf8.RuneLen(r) {
			t.Fatalf("FoldRune(%U) = %U is longer", r, got)
		}
	}
}

func TestFoldRuneByName(t *testing.T) {
	for r, want := range map[rune]rune{
		'K': 'k', '\u212A': 'k', '\u017F': 's', 'z': 'z', '[': '[', 'ⱥ': 'Ⱥ', 'ẞ': 'ß', 'ς': 'Σ', 'İ': 'İ', '中': '中',
	} {
		if got := FoldRune(r); got != want {
			t.Errorf("FoldRune(%q) = %q, want %q", r, got, want)
		}
	}
}
