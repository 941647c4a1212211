package indextest

import (
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// finder gives the ranges of a text that are found, the leftmost first and
// without overlap, and whether anything is found at all: an empty match is
// found but is no range.
type finder func(text []byte) (ranges []Range, found bool)

func expression(re *regexp.Regexp) finder {
	return func(text []byte) ([]Range, bool) {
		var ranges []Range
		found := re.FindAllIndex(text, -1)
		for _, loc := range found {
			if loc[0] < loc[1] {
				ranges = append(ranges, Range{loc[0], loc[1]})
			}
		}
		return ranges, found != nil
	}
}

// substring looks for the pattern at every byte, compared by bytes or by runes
// that fold to each other.
func substring(pattern string, caseSensitive bool) finder {
	equal := func(a, b rune) bool { return slices.Contains(orbit(a), b) }
	if caseSensitive {
		equal = func(a, b rune) bool { return a == b }
	}
	first := firstBytes(pattern, equal)
	return func(text []byte) (ranges []Range, found bool) {
		for i := 0; i < len(text); i++ {
			if !first[text[i]] {
				continue
			}
			if n, ok := prefix(text[i:], pattern, equal); ok {
				ranges = append(ranges, Range{i, i + n})
				i += n - 1
			}
		}
		return ranges, ranges != nil
	}
}

// prefix tells whether text begins with the pattern, and with how many bytes.
// A byte that is not UTF-8 is like no rune.
func prefix(text []byte, pattern string, equal func(a, b rune) bool) (n int, ok bool) {
	for _, want := range pattern {
		r, size := utf8.DecodeRune(text[n:])
		if r == utf8.RuneError && size <= 1 || !equal(want, r) {
			return 0, false
		}
		n += size
	}
	return n, true
}

// firstBytes are the bytes that a match can begin with.
func firstBytes(pattern string, equal func(a, b rune) bool) (first [256]bool) {
	want, _ := utf8.DecodeRuneInString(pattern)
	for _, r := range orbit(want) {
		if equal(want, r) {
			first[string(r)[0]] = true
		}
	}
	return first
}

// orbit lists the runes that fold to r, r included.
func orbit(r rune) []rune {
	all := []rune{r}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		all = append(all, f)
	}
	return all
}
