package ngram

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestFoldIsOnePerOrbit(t *testing.T) {
	for r := rune(-1); r <= unicode.MaxRune+1; r++ {
		got := folds().fold(r)
		if want := modelFold(r); got != want {
			t.Fatalf("fold(%U) = %U, want %U", r, got, want)
		}
		if next := unicode.SimpleFold(r); folds().fold(next) != got {
			t.Fatalf("%U and %U fold apart", r, next)
		}
		if utf8.RuneLen(got) > utf8.RuneLen(r) {
			t.Fatalf("fold(%U) = %U is longer", r, got)
		}
	}
}

func TestFoldByName(t *testing.T) {
	for r, want := range map[rune]rune{
		'K': 'k', '\u212A': 'k', '\u017F': 's', 'z': 'z', '[': '[', 'ⱥ': 'Ⱥ', 'ẞ': 'ß', 'ς': 'Σ', 'İ': 'İ', '中': '中',
	} {
		if got := folds().fold(r); got != want {
			t.Errorf("fold(%q) = %q, want %q", r, got, want)
		}
	}
}
